// MessageMutator: messages and bytes, damaged; for tests and fuzz targets.
#pragma once

#include <cstdint>
#include <string>

namespace google::protobuf {
class FieldDescriptor;
class Message;
}  // namespace google::protobuf

namespace eagle::testing {

// The same seed makes the same changes on every machine. For one thread.
class MessageMutator {
public:
  explicit MessageMutator(std::uint64_t seed) : state_(seed) {}

  // Changes one field somewhere in a message, which stays a message but seldom what it was: numbers become
  // wild or slightly off, parts vanish, change places or double.
  void change(google::protobuf::Message& message);

  // Flips, overwrites, removes, repeats or cuts off a few bytes.
  std::string damaged(std::string bytes);

  std::uint64_t next();                      // SplitMix64
  std::uint64_t below(std::uint64_t bound);  // 0 <= result < bound, bound >= 1

private:
  void set(google::protobuf::Message& message, const google::protobuf::FieldDescriptor& field);
  void change_element(google::protobuf::Message& message, const google::protobuf::FieldDescriptor& field);
  std::int64_t number();
  std::string name();

  std::uint64_t state_;
};

}  // namespace eagle::testing
