"""Types that every schema may import: Google's well-known and common types, and Confluent's decimal.

Source: Protocol Buffers, "Well-Known Types"; googleapis, google/type; Confluent Schema Registry, "Protobuf Schema Serializer".
"""

from __future__ import annotations

from tailgate.formats.protobuf.text import parsed

FILE = parsed(
    """
    syntax = "proto3";
    package google.protobuf;
    message Timestamp { int64 seconds = 1; int32 nanos = 2; }
    message Duration { int64 seconds = 1; int32 nanos = 2; }
    message DoubleValue { double value = 1; }
    message FloatValue { float value = 1; }
    message Int64Value { int64 value = 1; }
    message UInt64Value { uint64 value = 1; }
    message Int32Value { int32 value = 1; }
    message UInt32Value { uint32 value = 1; }
    message BoolValue { bool value = 1; }
    message StringValue { string value = 1; }
    message BytesValue { bytes value = 1; }
    message Any { string type_url = 1; bytes value = 2; }
    message Empty { }
    message FieldMask { repeated string paths = 1; }
    message Struct { map<string, Value> fields = 1; }
    message Value {
      oneof kind { NullValue null_value = 1; double number_value = 2; string string_value = 3; bool bool_value = 4;
                   Struct struct_value = 5; ListValue list_value = 6; }
    }
    message ListValue { repeated Value values = 1; }
    enum NullValue { NULL_VALUE = 0; }
    """
)
COMMON = (
    parsed(
        """
        syntax = "proto3";
        package google.type;
        message Date { int32 year = 1; int32 month = 2; int32 day = 3; }
        message TimeOfDay { int32 hours = 1; int32 minutes = 2; int32 seconds = 3; int32 nanos = 4; }
        """
    ),
    parsed(
        """
        syntax = "proto3";
        package confluent.type;
        message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }
        """
    ),
)
_WRAPPED = ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
WRAPPERS = frozenset(f"google.protobuf.{name}Value" for name in _WRAPPED)
