"""`tidegate completion`."""

import click
from click.shell_completion import get_completion_class


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the completion script of a shell.

    \b
    tidegate completion bash > ~/.local/share/bash-completion/completions/tidegate
    """
    completion = get_completion_class(shell)
    assert completion is not None  # noqa: S101 - click has one for each of these shells
    click.echo(completion(ctx.find_root().command, {}, "tidegate", "_TIDEGATE_COMPLETE").source())
