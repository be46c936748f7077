"""Messages and methods of hippodrome.v1, made of the description that setup.py packs. In a pool of their own: code that
an application generates from the same protos does not meet them."""

from __future__ import annotations

import importlib.resources
from typing import Any, Callable

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_PACKAGE = "hippodrome.v1."


def _read() -> descriptor_pool.DescriptorPool:
    pool = descriptor_pool.DescriptorPool()
    data = (importlib.resources.files(__package__) / "protocol.binpb").read_bytes()
    for file in descriptor_pb2.FileDescriptorSet.FromString(data).file:
        pool.AddSerializedFile(file.SerializeToString())
    return pool


_POOL = _read()


def message(name: str, **fields: Any) -> Any:
    """A message; fields that are None are left out."""
    made: Any = message_factory.GetMessageClass(_POOL.FindMessageTypeByName(_PACKAGE + name))
    return made(**{field: value for field, value in fields.items() if value is not None})


class Method:
    def __init__(self, service: str, name: str) -> None:
        described = _POOL.FindServiceByName(_PACKAGE + service).methods_by_name[name]
        answer: Any = message_factory.GetMessageClass(described.output_type)
        self.path = f"/{_PACKAGE}{service}/{name}"
        self.parse: Callable[[bytes], Any] = answer.FromString

    @staticmethod
    def write(request: Any) -> bytes:
        data: bytes = request.SerializeToString()
        return data
