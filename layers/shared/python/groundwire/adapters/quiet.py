"""What libraries say of the requests they send: headers, bodies, and URLs that are all it takes to read.

Below WARNING they say all of it, and an operator may set the platform's log level to DEBUG: theirs stays.
"""

import logging
from typing import Final

TALKERS: Final = (
    "aws_lambda_powertools",
    "boto3",
    "botocore",
    "google",
    "google_genai",
    "httpcore2",
    "httpx2",
    "msal",
    "requests",
    "s3transfer",
    "urllib3",
)


def quiet() -> None:
    """From WARNING on only, whatever the root logger's level."""
    for name in TALKERS:
        logging.getLogger(name).setLevel(logging.WARNING)
