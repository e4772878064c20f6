"""Least privilege: what each role may do, action by action (Z-5)."""

from tests.infra.synthesized import Synthesized

_LOG = {"logs:CreateLogStream", "logs:PutLogEvents"}
_OBJECTS = {"s3:GetObject", "s3:GetObjectVersion"}
_READ_INDEX = {"dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:Query"}
_WRITE_INDEX = {
    "dynamodb:PutItem",
    "dynamodb:UpdateItem",
    "dynamodb:DeleteItem",
    "dynamodb:BatchWriteItem",
    "dynamodb:ConditionCheckItem",
}


def _named(deployment: Synthesized) -> dict[str, str]:
    return {
        "table": deployment.logical_id("AWS::DynamoDB::GlobalTable", ""),
        "bucket": deployment.logical_id("AWS::S3::Bucket", ""),
        "queue": deployment.logical_id("AWS::SQS::Queue", "IndexingQueue"),
    }


def test_the_indexer_reads_documents_and_writes_the_index(prod: Synthesized) -> None:
    named = _named(prod)
    assert prod.allowed("indexer") == {
        prod.logical_id("AWS::Logs::LogGroup", "IndexerLog"): _LOG,
        f"{named['bucket']}/*": _OBJECTS,
        named["bucket"]: {"s3:ListBucket"},
        named["table"]: _READ_INDEX | _WRITE_INDEX,
        named["queue"]: {
            "sqs:ReceiveMessage",
            "sqs:DeleteMessage",
            "sqs:ChangeMessageVisibility",
            "sqs:GetQueueUrl",
            "sqs:GetQueueAttributes",
        },
        prod.logical_id("AWS::SQS::Queue", "DeadLetters"): {"sqs:SendMessage"},
    }


def test_grounding_writes_nothing_but_a_message_to_the_indexer(prod: Synthesized) -> None:
    named = _named(prod)
    assert prod.allowed("grounding") == {
        prod.logical_id("AWS::Logs::LogGroup", "GroundingLog"): _LOG,
        f"{named['bucket']}/*": _OBJECTS,
        named["bucket"]: {"s3:ListBucket"},
        named["table"]: _READ_INDEX,
        named["queue"]: {"sqs:SendMessage"},
    }


def test_documents_outside_the_roots_are_out_of_reach(guest: Synthesized) -> None:
    bucket = _named(guest)["bucket"]
    for folder in ("indexer", "grounding"):
        s3 = {
            resource: actions
            for resource, actions in guest.allowed(folder).items()
            if any(action.startswith("s3:") for action in actions)
        }
        assert s3 == {
            "arn:aws:s3:::acme-handbook/published/*": _OBJECTS,
            "arn:aws:s3:::acme-handbook/recipes/*": _OBJECTS,
            "arn:aws:s3:::acme-handbook": {"s3:ListBucket"},
            f"{bucket}/*": _OBJECTS,
            bucket: {"s3:ListBucket"},
        }


def test_roles_are_for_lambda_alone(any_deployment: Synthesized) -> None:
    for role in any_deployment.resources("AWS::IAM::Role").values():
        (trust,) = role["Properties"]["AssumeRolePolicyDocument"]["Statement"]
        assert trust["Principal"] == {"Service": "lambda.amazonaws.com"}


def test_the_grounding_role_and_function_keep_a_short_name(any_deployment: Synthesized) -> None:
    function = any_deployment.function("grounding")["Properties"]
    role = any_deployment.properties("AWS::IAM::Role", function["Role"]["Fn::GetAtt"][0])
    assert function["FunctionName"] == role["RoleName"]
    # google.subject holds 127 bytes, and is mapped to "<role>/<function>"
    assert len(f"{role['RoleName']}/{function['FunctionName']}") <= 127
