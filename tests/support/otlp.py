"""Reads an OTLP request for profiles with OpenTelemetry's own classes, checks what the schema asks
for, and prints it as JSON. The request comes on the standard input, perhaps compressed."""

import gzip
import json
import sys

from google.protobuf import unknown_fields
from opentelemetry.proto.collector.profiles.v1development import profiles_service_pb2 as service

data = sys.stdin.buffer.read()
if data.startswith(b"\x1f\x8b"):
    data = gzip.decompress(data)
request = service.ExportProfilesServiceRequest.FromString(data)


def known(message):
    """Each field is one of the schema, in each message of the request."""
    fields = unknown_fields.UnknownFieldSet(message)
    assert len(fields) == 0, (type(message), [field.field_number for field in fields])
    for field, value in message.ListFields():
        if field.message_type is not None:
            for inner in value if field.is_repeated else [value]:
                known(inner)


known(request)
dictionary = request.dictionary
tables = {
    "mapping": dictionary.mapping_table,
    "location": dictionary.location_table,
    "function": dictionary.function_table,
    "link": dictionary.link_table,
    "attribute": dictionary.attribute_table,
    "stack": dictionary.stack_table,
}
strings = dictionary.string_table
assert strings[0] == "" and len(set(strings)) == len(strings), "strings"
used = {name: {0} for name in [*tables, "string"]}
for name, table in tables.items():
    # "must always be zero value and present"; "there SHOULD NOT be dupes".
    assert table[0].ByteSize() == 0, name
    all_items = [item.SerializeToString(deterministic=True) for item in table]
    assert len(set(all_items)) == len(all_items), f"duplicates in {name}"


def text(index):
    used["string"].add(index)
    return strings[index]


def item(name, index):
    used[name].add(index)
    assert 0 <= index < len(tables[name]), (name, index)
    return tables[name][index]


def any_value(value):
    kind = value.WhichOneof("value")
    assert kind in ("string_value", "bool_value"), kind
    return getattr(value, kind)


def attributes(indices):
    found = {}
    for index in indices:
        attribute = item("attribute", index)
        key = text(attribute.key_strindex)
        assert index > 0 and key and key not in found, (index, key)
        found[key] = any_value(attribute.value)
    return found


def frames(index):
    """The functions of a stack from the sampled one outwards, those it is inlined into as well."""
    names = []
    for location_index in item("stack", index).location_indices:
        location = item("location", location_index)
        assert location_index > 0 and len(location.lines) > 0
        mapping = item("mapping", location.mapping_index)
        assert mapping.memory_start <= location.address <= mapping.memory_limit
        attributes(mapping.attribute_indices)
        kind = attributes(location.attribute_indices)["profile.frame.type"]
        assert kind in ("native", "kernel"), kind
        for line in location.lines:
            function = item("function", line.function_index)
            assert line.function_index > 0
            text(function.filename_strindex)
            names.append(text(function.name_strindex))
        text(mapping.filename_strindex)
    return names


def value_type(of):
    return [text(of.type_strindex), text(of.unit_strindex)]


resources, ids = [], set()
for resource_profiles in request.resource_profiles:
    about = {}
    for attribute in resource_profiles.resource.attributes:
        assert attribute.key and attribute.key not in about, attribute.key
        about[attribute.key] = any_value(attribute.value)
    assert about["service.name"]
    [scope_profiles] = resource_profiles.scope_profiles
    assert scope_profiles.scope.name == "precise" and scope_profiles.scope.version
    profiles = []
    for profile in scope_profiles.profiles:
        assert len(profile.profile_id) == 16 and any(profile.profile_id)
        assert profile.profile_id not in ids, "two profiles have one id"
        ids.add(profile.profile_id)
        samples, seen = [], set()
        for sample in profile.samples:
            [value] = sample.values
            assert value > 0 and not sample.timestamps_unix_nano and sample.link_index == 0
            # "Samples having the same identity SHOULD be combined".
            same = (sample.stack_index, tuple(sorted(sample.attribute_indices)))
            assert same not in seen, same
            seen.add(same)
            stack = frames(sample.stack_index)
            samples.append({"stack": stack, "attributes": attributes(sample.attribute_indices), "value": value})
        kind, unit = value_type(profile.sample_type)
        assert kind and unit and samples
        profiles.append(
            {
                "type": kind,
                "unit": unit,
                "period_type": value_type(profile.period_type),
                "period": profile.period,
                "time": profile.time_unix_nano,
                "duration": profile.duration_nano,
                "attributes": attributes(profile.attribute_indices),
                "samples": samples,
            }
        )
    types = [profile["type"] for profile in profiles]
    assert types and len(set(types)) == len(types), types
    resources.append({"attributes": about, "profiles": profiles})

for attribute in dictionary.attribute_table[1:]:
    text(attribute.key_strindex)
for name, table in [*tables.items(), ("string", strings)]:
    # "There SHOULD NOT be orphaned items".
    assert used[name] == set(range(len(table))), (name, set(range(len(table))) - used[name])
json.dump({"resources": resources}, sys.stdout)
