"""How a service grounds, and what a call may change of it (seed); nonsense is refused by name (B-1)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from groundwire.errors import InvalidRequest
from groundwire.fetching import PrepareDocumentOptions
from groundwire.limits import MAX_DOCUMENTS_DEFAULT, SOURCES_PER_REQUEST
from groundwire.policy import CompositionPolicy
from groundwire.roots import SOURCE_TYPES

_PREPARE_OPTIONS: Final = {
    "forceContentType": ("force_content_type", ("text", "attachment")),
    "useFilesApi": ("use_files_api", ("auto", "always", "never")),
}


@dataclass(frozen=True, slots=True)
class CanonicalGroundingConfig:
    """How a service grounds (seed); a call's overrides merge over it."""

    max_documents: int = MAX_DOCUMENTS_DEFAULT
    allowed_source_types: tuple[str, ...] = SOURCE_TYPES
    prepare_document_options: PrepareDocumentOptions | None = None
    composition_policy: CompositionPolicy | None = None
    """None: root documents only, no includes."""

    def merged(self, overrides: Mapping[str, Any] | None) -> "CanonicalGroundingConfig":
        """This configuration with a call's overrides, in camelCase or snake_case, over it.

        `compositionPolicy` merges field by field; an explicit None switches composition off.
        """
        known = {
            "maxDocuments": "max_documents",
            "allowedSourceTypes": "allowed_source_types",
            "prepareDocumentOptions": "prepare_document_options",
            "compositionPolicy": "composition_policy",
        }
        config = self
        for name, value in (overrides or {}).items():
            field_name = known.get(name, name)
            if field_name not in known.values():
                raise InvalidRequest(f"overrides.{name}", f"is unknown; known are {', '.join(known)}")
            config = replace(config, **{field_name: _override(self, field_name, name, value)})
        return config


def _override(config: CanonicalGroundingConfig, field_name: str, name: str, value: Any) -> Any:
    if field_name == "composition_policy":
        if value is None:
            return value
        try:
            return (config.composition_policy or CompositionPolicy()).merged(value)
        except InvalidRequest as error:
            raise InvalidRequest(f"overrides.{name}.{error.field}", error.problem) from error
    if value is None:
        return getattr(config, field_name)
    if field_name == "max_documents":
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise InvalidRequest(f"overrides.{name}", "must be a whole number of at least 1")
        return min(value, SOURCES_PER_REQUEST)
    if field_name == "allowed_source_types":
        if not isinstance(value, list | tuple) or not all(each in SOURCE_TYPES for each in value):
            raise InvalidRequest(f"overrides.{name}", f"must be a list of {', '.join(SOURCE_TYPES)}")
        return tuple(value)
    return _prepare_options(value, f"overrides.{name}")


def _prepare_options(value: Any, where: str) -> PrepareDocumentOptions:
    """The options, also as a caller wrote them out, in camelCase or snake_case."""
    if isinstance(value, PrepareDocumentOptions):
        return value
    if not isinstance(value, Mapping):
        raise InvalidRequest(where, "must be an object")
    options = PrepareDocumentOptions()
    for name, option in value.items():
        field_name, allowed = _PREPARE_OPTIONS.get(name) or _PREPARE_OPTIONS.get(_camel(name)) or ("", ())
        if not field_name:
            raise InvalidRequest(f"{where}.{name}", f"is unknown; known are {', '.join(_PREPARE_OPTIONS)}")
        if option is not None and option not in allowed:
            choices = " or ".join(f'"{each}"' for each in allowed)
            raise InvalidRequest(f"{where}.{name}", f"must be {choices}")
        if option is not None:
            options = replace(options, **{field_name: option})
    return options


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(each.title() for each in others)
