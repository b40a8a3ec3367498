"""Make requests, over one connection to each address, and fail where an answer is not as long as expected.

get.py TIMES BYTES ADDRESS...
"""

import http.client
import sys


def main() -> None:
    """Ask each address so many times for /body."""
    times, length, *addresses = sys.argv[1:]
    for address in addresses:
        connection = http.client.HTTPConnection(address, 80, timeout=30)
        for _ in range(int(times)):
            connection.request("GET", "/body")
            answer = connection.getresponse()
            got = len(answer.read())
            if (answer.status, got) != (200, int(length)):
                sys.exit(f"{address}: status {answer.status}, {got} bytes")
        connection.close()


if __name__ == "__main__":
    main()
