"""A secret in AWS Secrets Manager, read when it is first wanted and never from the environment."""

from collections.abc import Callable
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from groundwire.errors import Unavailable


def secret_text(secrets: Any, secret_id: str) -> Callable[[], str]:
    """Reads the secret's text, without the blanks around it; `secrets` is boto3's client.

    What is given raises Unavailable where the secret cannot be had or holds no text.
    """

    def read() -> str:
        try:
            text = secrets.get_secret_value(SecretId=secret_id).get("SecretString", "").strip()
        except ClientError as error:
            code = error.response["Error"]["Code"]
            raise Unavailable(secret_id, f"the secret cannot be read ({code})") from error
        except BotoCoreError as error:
            raise Unavailable(secret_id, f"no answer ({type(error).__name__})") from error
        if not text:
            raise Unavailable(secret_id, "the secret holds no text")
        return str(text)

    return read
