"""Least privilege: what each role may do, action by action (Z-5)."""

from tests.infra.synthesized import Synthesized

_LOG = {"logs:CreateLogStream", "logs:PutLogEvents"}
_OBJECTS = {"s3:GetObject", "s3:GetObjectVersion"}
_PLACE = {"s3:PutObject", "s3:PutObjectTagging"}
_EMPTY_INBOX = {"s3:DeleteObject", "s3:GetObjectTagging"}
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
        "bucket": deployment.own_bucket(),
        "queue": deployment.logical_id("AWS::SQS::Queue", "IndexingQueue"),
    }


def test_the_indexer_reads_and_places_documents_and_writes_the_index(prod: Synthesized) -> None:
    named = _named(prod)
    assert prod.allowed("indexer") == {
        prod.logical_id("AWS::Logs::LogGroup", "IndexerLog"): _LOG,
        f"{named['bucket']}/*": _OBJECTS | _PLACE,
        f"{named['bucket']}/inbox/*": _EMPTY_INBOX,
        named["bucket"]: {"s3:ListBucket"},
        named["table"]: _READ_INDEX | _WRITE_INDEX,
        prod.logical_id("AWS::Events::EventBus", "Verdicts"): {"events:PutEvents"},
        named["queue"]: {
            "sqs:SendMessage",
            "sqs:ReceiveMessage",
            "sqs:DeleteMessage",
            "sqs:ChangeMessageVisibility",
            "sqs:GetQueueUrl",
            "sqs:GetQueueAttributes",
        },
        prod.logical_id("AWS::SQS::Queue", "DeadLetters"): {"sqs:SendMessage"},
    }


def _indexing(deployment: Synthesized) -> dict[str, set[str]]:
    """What it takes to look at a document again, whoever does."""
    named = _named(deployment)
    return {
        f"{named['bucket']}/*": _OBJECTS | _PLACE,
        f"{named['bucket']}/inbox/*": _EMPTY_INBOX,
        named["bucket"]: {"s3:ListBucket"},
        named["table"]: _READ_INDEX | _WRITE_INDEX,
        deployment.logical_id("AWS::Events::EventBus", "Verdicts"): {"events:PutEvents"},
        named["queue"]: {"sqs:SendMessage"},
    }


def test_a_worker_may_do_what_looking_again_takes(prod: Synthesized) -> None:
    assert prod.allowed("reindex") == _indexing(prod) | {
        prod.logical_id("AWS::Logs::LogGroup", "WorkerLog"): _LOG
    }


def test_only_reconciling_scans_and_reads_the_workers_results(prod: Synthesized) -> None:
    named, results = _named(prod), prod.logical_id("AWS::S3::Bucket", "Results")
    assert prod.allowed("reindex", "reconcile") == _indexing(prod) | {
        named["table"]: _READ_INDEX | _WRITE_INDEX | {"dynamodb:Scan"},
        f"{results}/*": {"s3:GetObject"},
        prod.logical_id("AWS::Logs::LogGroup", "ReconcilerLog"): _LOG,
    }
    assert "dynamodb:Scan" not in str(
        [prod.allowed(folder) for folder in ("indexer", "grounding", "reindex")]
    )


def test_a_run_lists_its_root_invokes_two_functions_and_writes_results(guest: Synthesized) -> None:
    results = guest.logical_id("AWS::S3::Bucket", "Results")
    role = guest.logical_id("AWS::IAM::Role", "ReindexinghandbookStateMachineRole")
    machine = guest.logical_id("AWS::StepFunctions::StateMachine", "Reindexinghandbook")
    allowed = guest.allowed_to(role)
    log_delivery = allowed.pop("*")
    assert all(action.startswith("logs:") for action in log_delivery)
    executions = {name: allowed.pop(name) for name in list(allowed) if ":execution:" in name}
    assert all(machine in name for name in executions)
    assert set().union(*executions.values()) == {
        "states:DescribeExecution",
        "states:StopExecution",
        "states:RedriveExecution",
    }
    assert allowed == {
        "arn:aws:s3:::acme-handbook": {"s3:ListBucket"},
        f"arn:AWS::Partition:s3:::{results}/*": {
            "s3:PutObject",
            "s3:GetObject",
            "s3:ListMultipartUploadParts",
            "s3:AbortMultipartUpload",
        },
        guest.logical_id("AWS::Lambda::Alias", "Worker"): {"lambda:InvokeFunction"},
        guest.logical_id("AWS::Lambda::Alias", "Reconciler"): {"lambda:InvokeFunction"},
        machine: {"states:StartExecution"},
    }


def test_grounding_writes_messages_to_the_indexer_and_bodies_on_the_shelf(prod: Synthesized) -> None:
    named = _named(prod)
    shelf = prod.logical_id("AWS::S3::Bucket", "Delivery")
    assert prod.allowed("grounding") == {
        prod.logical_id("AWS::Logs::LogGroup", "GroundingLog"): _LOG,
        f"{named['bucket']}/*": _OBJECTS,
        named["bucket"]: {"s3:ListBucket"},
        named["table"]: _READ_INDEX,
        named["queue"]: {"sqs:SendMessage"},
        f"{shelf}/*": {"s3:PutObject", "s3:GetObject"},
    }


def test_documents_outside_the_roots_are_out_of_reach(guest: Synthesized) -> None:
    bucket = _named(guest)["bucket"]
    roots = ("arn:aws:s3:::acme-handbook/published/", "arn:aws:s3:::acme-handbook/recipes/", f"{bucket}/")
    listed = {each: {"s3:ListBucket"} for each in ("arn:aws:s3:::acme-handbook", bucket)}
    shelf = guest.logical_id("AWS::S3::Bucket", "Delivery")
    read = {f"{root}*": _OBJECTS for root in roots}
    assert _of_s3(guest, "grounding") == read | listed | {f"{shelf}/*": {"s3:PutObject", "s3:GetObject"}}
    inboxes = ("in/", "inbox/", "inbox/")
    assert _of_s3(guest, "indexer") == {
        **{f"{root}*": _OBJECTS | _PLACE for root in roots},
        **{f"{root}{inbox}*": _EMPTY_INBOX for root, inbox in zip(roots, inboxes, strict=True)},
        **listed,
    }


def _of_s3(deployment: Synthesized, folder: str) -> dict[str, set[str]]:
    allowed = deployment.allowed(folder).items()
    return {name: actions for name, actions in allowed if any(each.startswith("s3:") for each in actions)}


def test_roles_are_for_one_service_each(any_deployment: Synthesized) -> None:
    for name, role in any_deployment.resources("AWS::IAM::Role").items():
        (trust,) = role["Properties"]["AssumeRolePolicyDocument"]["Statement"]
        service = "lambda"
        if "StateMachine" in name:
            service = "events" if "EventsRole" in name else "states"
        assert trust["Principal"] == {"Service": f"{service}.amazonaws.com"}


def test_the_grounding_role_and_function_keep_a_short_name(any_deployment: Synthesized) -> None:
    function = any_deployment.function("grounding")["Properties"]
    role = any_deployment.properties("AWS::IAM::Role", function["Role"]["Fn::GetAtt"][0])
    assert function["FunctionName"] == role["RoleName"]
    # google.subject holds 127 bytes, and is mapped to "<role>/<function>"
    assert len(f"{role['RoleName']}/{function['FunctionName']}") <= 127
