#include "proto/testing_mutator.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <vector>

namespace eagle::testing {
namespace {

using Message = google::protobuf::Message;
using Field = google::protobuf::FieldDescriptor;

// Every message inside `message`, itself included.
std::vector<Message*> parts_of(Message& message) {
  std::vector<Message*> all{&message};
  for (std::size_t i = 0; i < all.size(); ++i) {
    Message& part = *all[i];
    const auto& reflection = *part.GetReflection();
    std::vector<const Field*> fields;
    reflection.ListFields(part, &fields);
    for (const Field* const field : fields) {
      if (field->cpp_type() != Field::CPPTYPE_MESSAGE) continue;
      if (!field->is_repeated()) {
        all.push_back(reflection.MutableMessage(&part, field));
        continue;
      }
      for (int k = 0; k < reflection.FieldSize(part, field); ++k) {
        all.push_back(reflection.MutableRepeatedMessage(&part, field, k));
      }
    }
  }
  return all;
}

}  // namespace

std::uint64_t MessageMutator::next() {
  state_ += 0x9e3779b97f4a7c15;
  std::uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

std::uint64_t MessageMutator::below(std::uint64_t bound) { return next() % bound; }

// Small ones name things that are there: planes, arguments, earlier values.
std::int64_t MessageMutator::number() {
  if (below(8) != 0) return static_cast<std::int64_t>(below(below(2) == 0 ? 12 : 90));
  const auto wild = static_cast<std::int64_t>(next() >> below(64));
  return below(2) == 0 ? wild : static_cast<std::int64_t>(0 - static_cast<std::uint64_t>(wild));
}

std::string MessageMutator::name() {
  if (below(8) == 0) return "\xc3";  // not UTF-8
  return std::string(below(3), static_cast<char>('a' + below(26)));
}

void MessageMutator::change(Message& message) {
  const std::vector<Message*> parts = parts_of(message);
  Message& part = *parts[below(parts.size())];
  const int count = part.GetDescriptor()->field_count();
  if (count == 0) return;
  const Field& field =
      *part.GetDescriptor()->field(static_cast<int>(below(static_cast<std::uint64_t>(count))));
  const auto& reflection = *part.GetReflection();
  if (below(10) == 0) return reflection.ClearField(&part, &field);
  if (field.is_repeated() && reflection.FieldSize(part, &field) > 0 && below(10) < 7) {
    return change_element(part, field);
  }
  set(part, field);
}

void MessageMutator::change_element(Message& message, const Field& field) {
  const auto& reflection = *message.GetReflection();
  const auto size = static_cast<std::uint64_t>(reflection.FieldSize(message, &field));
  const int at = static_cast<int>(below(size));
  if (below(10) < 7) {
    switch (field.cpp_type()) {
      case Field::CPPTYPE_UINT32:
        return reflection.SetRepeatedUInt32(&message, &field, at, static_cast<std::uint32_t>(number()));
      case Field::CPPTYPE_INT64:
        return reflection.SetRepeatedInt64(&message, &field, at, number());
      default:
        break;
    }
  }
  if (below(2) == 0) return reflection.SwapElements(&message, &field, at, static_cast<int>(below(size)));
  reflection.RemoveLast(&message, &field);
}

// Sets a field, or adds an element to it.
void MessageMutator::set(Message& message, const Field& field) {
  const auto& reflection = *message.GetReflection();
  const bool add = field.is_repeated();
  switch (field.cpp_type()) {
    case Field::CPPTYPE_INT64:
      return add ? reflection.AddInt64(&message, &field, number())
                 : reflection.SetInt64(&message, &field, number());
    case Field::CPPTYPE_INT32: {
      const auto value = static_cast<std::int32_t>(number());
      return add ? reflection.AddInt32(&message, &field, value)
                 : reflection.SetInt32(&message, &field, value);
    }
    case Field::CPPTYPE_UINT64: {
      const auto value = static_cast<std::uint64_t>(number());
      return add ? reflection.AddUInt64(&message, &field, value)
                 : reflection.SetUInt64(&message, &field, value);
    }
    case Field::CPPTYPE_UINT32: {
      const auto value = static_cast<std::uint32_t>(number());
      return add ? reflection.AddUInt32(&message, &field, value)
                 : reflection.SetUInt32(&message, &field, value);
    }
    case Field::CPPTYPE_ENUM: {
      const int value = static_cast<int>(below(90));
      return add ? reflection.AddEnumValue(&message, &field, value)
                 : reflection.SetEnumValue(&message, &field, value);
    }
    case Field::CPPTYPE_DOUBLE:
      return add ? reflection.AddDouble(&message, &field, 0.5) : reflection.SetDouble(&message, &field, 0.5);
    case Field::CPPTYPE_FLOAT:
      return add ? reflection.AddFloat(&message, &field, 0.5f) : reflection.SetFloat(&message, &field, 0.5f);
    case Field::CPPTYPE_BOOL:
      return add ? reflection.AddBool(&message, &field, true)
                 : reflection.SetBool(&message, &field, below(2) == 0);
    case Field::CPPTYPE_STRING:
      return add ? reflection.AddString(&message, &field, name())
                 : reflection.SetString(&message, &field, name());
    case Field::CPPTYPE_MESSAGE: {
      if (!add) {
        reflection.MutableMessage(&message, &field);
        return;
      }
      const int size = reflection.FieldSize(message, &field);
      Message& fresh = *reflection.AddMessage(&message, &field);
      if (size > 0 && below(2) == 0) {
        fresh.CopyFrom(reflection.GetRepeatedMessage(
            message, &field, static_cast<int>(below(static_cast<std::uint64_t>(size)))));
      }
      return;
    }
  }
}

std::string MessageMutator::damaged(std::string bytes) {
  for (std::uint64_t edits = 1 + below(4); edits > 0 && !bytes.empty(); --edits) {
    const std::size_t at = below(bytes.size());
    switch (below(7)) {
      case 0:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
        break;
      case 1:
        bytes[at] = static_cast<char>(next());
        break;
      case 2:
        bytes[at] = static_cast<char>(bytes[at] + (below(2) == 0 ? 1 : -1));
        break;
      case 3:
        bytes[at] = static_cast<char>(below(2) == 0 ? 0xff : 0x7f);
        break;
      case 4:
        bytes.erase(at, 1 + below(8));
        break;
      case 5:
        bytes.insert(below(bytes.size()), bytes.substr(at, 1 + below(32)));
        break;
      default:
        if (below(10) == 0) bytes.resize(at);
        break;
    }
  }
  return bytes;
}

}  // namespace eagle::testing
