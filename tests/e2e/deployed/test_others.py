"""What one document means for others, on the deployed stack: healing, dependents and placement."""

from tests.e2e.deployed.stack import Stack, eventually


def test_a_target_that_arrives_heals_its_includer_and_one_that_goes_breaks_it(
    stack: Stack, folder: str
) -> None:
    includer, target = f"{folder}/sop.md", f"{folder}/terms.md"
    stack.put_and_wait({includer: "---\nincludes: [terms.md]\n---\n"})
    assert stack.indexed(includer)["verdict"] == "invalid"
    stack.put({target: "Words."})
    eventually(lambda: stack.asked(includer).json(), lambda document: document["verdict"] == "valid")
    found = stack.api.get("/v1/dependents", uri=stack.uri(target)).json()["dependents"]
    assert [each["uri"] for each in found] == [stack.uri(includer)]
    stack.s3.delete_object(Bucket=stack.deployment.bucket, Key=target)
    eventually(lambda: stack.asked(includer).json(), lambda document: document["verdict"] == "invalid")


def test_an_upload_to_the_inbox_goes_to_its_canonical_path(stack: Stack, folder: str) -> None:
    inbox, placed = f"inbox/{folder} v2.md", f"{folder}/placed.md"
    text = f"---\ntitle: Placed\ncanonical_path: {placed}\n---\n"
    stack.put({inbox: text})
    assert stack.indexed(placed)["title"] == "Placed"
    stored = stack.s3.get_object(Bucket=stack.deployment.bucket, Key=placed)
    with stored["Body"] as body:
        assert body.read() == text.encode()

    def left() -> int:
        listing = stack.s3.list_objects_v2(Bucket=stack.deployment.bucket, Prefix=f"inbox/{folder}")
        return listing["KeyCount"]

    eventually(left, lambda count: count == 0)
    assert stack.asked(inbox).status == 404
