"""The TCP laboratory: links with rate, delay and loss between network namespaces, and experiments on them."""
