"""What an editor asks about a policy, as pure functions of its text: no protocol, no input or output.

Every answer comes from the tokens, so a file with errors is answered like one without. Start with `Document`.
"""
