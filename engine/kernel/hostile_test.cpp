// Bytes of valid kernels, damaged: whatever comes of them is refused with a reason, or is a kernel like any
// other.
#include <google/protobuf/message.h>
#include <google/protobuf/stubs/logging.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "eagle/v1/kernel.pb.h"
#include "engine/kernel/interpret.h"
#include "engine/kernel/names.h"
#include "engine/kernel/random_kernel.h"
#include "engine/kernel/random_planes.h"
#include "engine/kernel/text.h"
#include "engine/kernel/verify.h"
#include "engine/kernel/wire.h"

namespace eagle::kernel {
namespace {

constexpr std::uint64_t seed = 20240229;

std::vector<std::string> serialized_kernels() {
  std::vector<std::string> all;
  RandomKernelOptions options;
  options.ops = 12;  // short, so that a random byte matters
  for (std::uint64_t i = 0; i < 64; ++i) {
    v1::Kernel message;
    to_message(random_kernel(seed + i, options), message);
    all.push_back(message.SerializeAsString());
  }
  return all;
}

// Flips, overwrites, removes, repeats or cuts off a few bytes.
std::string damaged(std::string bytes, Random& random) {
  for (std::uint64_t edits = 1 + random.below(3); edits > 0 && !bytes.empty(); --edits) {
    const std::size_t at = random.below(bytes.size());
    switch (random.below(6)) {
      case 0:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << random.below(8)));
        break;
      case 1:
        bytes[at] = static_cast<char>(random.next());
        break;
      case 2:
        bytes[at] = static_cast<char>(bytes[at] + (random.chance(50) ? 1 : -1));
        break;
      case 3:
        bytes.erase(at, 1 + random.below(4));
        break;
      case 4:
        bytes.insert(at, bytes.substr(at, 1 + random.below(8)));
        break;
      default:
        if (random.chance(10)) bytes.resize(at);
        break;
    }
  }
  return bytes;
}

// Every message inside `message`, itself included.
void collect(google::protobuf::Message& message, std::vector<google::protobuf::Message*>& all) {
  all.push_back(&message);
  const auto* reflection = message.GetReflection();
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  reflection->ListFields(message, &fields);
  for (const auto* field : fields) {
    if (field->cpp_type() != google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) {
      collect(*reflection->MutableMessage(&message, field), all);
      continue;
    }
    for (int i = 0; i < reflection->FieldSize(message, field); ++i) {
      collect(*reflection->MutableRepeatedMessage(&message, field, i), all);
    }
  }
}

std::uint32_t odd_number(Random& random) {
  return random.chance(5) ? static_cast<std::uint32_t>(random.next())
                          : static_cast<std::uint32_t>(random.below(90));
}

void alter_repeated(google::protobuf::Message& message, const google::protobuf::FieldDescriptor* field,
                    Random& random) {
  using Field = google::protobuf::FieldDescriptor;
  const auto* reflection = message.GetReflection();
  const auto size = static_cast<std::uint64_t>(reflection->FieldSize(message, field));
  if (size > 0 && random.chance(70)) {
    const int at = static_cast<int>(random.below(size));
    if (field->cpp_type() == Field::CPPTYPE_UINT32 && random.chance(70)) {
      reflection->SetRepeatedUInt32(&message, field, at, odd_number(random));
    } else if (random.chance(50)) {
      reflection->SwapElements(&message, field, at, static_cast<int>(random.below(size)));
    } else {
      reflection->RemoveLast(&message, field);
    }
    return;
  }
  switch (field->cpp_type()) {
    case Field::CPPTYPE_UINT32:
      reflection->AddUInt32(&message, field, odd_number(random));
      break;
    case Field::CPPTYPE_STRING:
      reflection->AddString(&message, field, "\xc3");
      break;
    case Field::CPPTYPE_MESSAGE:
      reflection->AddMessage(&message, field);
      break;
    default:
      break;
  }
}

void alter_single(google::protobuf::Message& message, const google::protobuf::FieldDescriptor* field,
                  Random& random) {
  using Field = google::protobuf::FieldDescriptor;
  const auto* reflection = message.GetReflection();
  switch (field->cpp_type()) {
    case Field::CPPTYPE_UINT32:
      reflection->SetUInt32(&message, field, odd_number(random));
      break;
    case Field::CPPTYPE_UINT64:
      reflection->SetUInt64(&message, field, random.chance(20) ? random.next() : odd_number(random));
      break;
    case Field::CPPTYPE_ENUM:
      reflection->SetEnumValue(&message, field, static_cast<int>(odd_number(random)));
      break;
    case Field::CPPTYPE_INT64:
      reflection->SetInt64(&message, field, static_cast<std::int64_t>(random.next()));
      break;
    case Field::CPPTYPE_INT32:
      reflection->SetInt32(&message, field, static_cast<std::int32_t>(random.next()));
      break;
    case Field::CPPTYPE_DOUBLE:
      reflection->SetDouble(&message, field, 0.5);
      break;
    case Field::CPPTYPE_FLOAT:
      reflection->SetFloat(&message, field, 0.5f);
      break;
    case Field::CPPTYPE_BOOL:
      reflection->SetBool(&message, field, random.chance(50));
      break;
    case Field::CPPTYPE_STRING:
      reflection->SetString(&message, field, random.chance(50) ? "x" : "\xff");
      break;
    case Field::CPPTYPE_MESSAGE:
      if (random.chance(50)) {
        reflection->ClearField(&message, field);
      } else {
        reflection->MutableMessage(&message, field);
      }
      break;
    default:
      break;
  }
}

// Changes one field somewhere, which stays a message but seldom a kernel.
void alter(v1::Kernel& kernel, Random& random) {
  std::vector<google::protobuf::Message*> all;
  collect(kernel, all);
  google::protobuf::Message& message = *all[random.below(all.size())];
  const auto fields = static_cast<std::uint64_t>(message.GetDescriptor()->field_count());
  const auto* field = message.GetDescriptor()->field(static_cast<int>(random.below(fields)));
  if (field->is_repeated()) {
    alter_repeated(message, field, random);
  } else {
    alter_single(message, field, random);
  }
}

// How many ops a run of the region may take.
double work_of(const Region& region) {
  double work = 0;
  for (const Op& op : region.ops) {
    double nested = 1;
    for (const Region& inside : op.regions) nested += work_of(inside);
    work += op.code == Opcode::while_ ? nested * static_cast<double>(op.max_trips) : nested;
  }
  return work;
}

// A kernel may well be one that runs for hours, or that wants a table of gigabytes.
bool is_cheap(const Kernel& kernel) {
  double elements = 0;
  for (const Argument& argument : kernel.arguments) {
    double table = 1;
    for (const Axis& axis : argument.axes) table *= axis.extent;
    elements += table * argument.type.components();
  }
  return elements < 1e5 && work_of(kernel.body) < 1e4;
}

void expect_usable(const Kernel& kernel, Random& random) {
  v1::Kernel message;
  to_message(kernel, message);
  const StatusOr<Kernel> again = verify(message);
  ASSERT_TRUE(again.ok()) << again.status().to_string();
  EXPECT_EQ(*again, kernel);
  const StatusOr<Kernel> from_its_text = from_text(to_text(kernel));
  ASSERT_TRUE(from_its_text.ok()) << from_its_text.status().to_string() << to_text(kernel);
  EXPECT_EQ(*from_its_text, without_locations(kernel));
  EXPECT_EQ(content_hash(*from_its_text), content_hash(kernel));
  EXPECT_EQ(accesses(kernel).size(), kernel.arguments.size());

  if (!is_cheap(kernel)) return;
  Planes planes = random_planes(kernel, 2, random);
  const Planes before = planes;
  const std::vector<Access> access = accesses(kernel);
  EXPECT_LE(interpret_launch(kernel, planes.interpreter_planes(), 2, 2).steps, 2);
  for (std::size_t a = 0; a < access.size(); ++a) {
    if (access[a].written) continue;
    EXPECT_EQ(planes.bytes[a], before.bytes[a]) << to_text(kernel);
  }
}

struct Tally {
  int accepted = 0;
  int refused = 0;

  void judge(const v1::Kernel& message, Random& random) {
    const StatusOr<Kernel> kernel = verify(message);
    if (kernel.ok()) {
      ++accepted;
      expect_usable(*kernel, random);
      return;
    }
    ++refused;
    const Reason reason = kernel.status().reason();
    EXPECT_TRUE(reason == Reason::malformed_kernel || reason == Reason::kernel_limit)
        << kernel.status().to_string();
    EXPECT_TRUE(is_utf8(kernel.status().message()));
  }
};

TEST(Hostile, DamagedBytesAreRefusedOrUsable) {
  const google::protobuf::LogSilencer silence;  // it logs names that are not UTF-8
  const std::vector<std::string> kernels = serialized_kernels();
  Tally tally;
  for (std::uint64_t i = 0; i < 20'000 && !HasFailure(); ++i) {
    SCOPED_TRACE("seed " + std::to_string(seed) + " iteration " + std::to_string(i));
    Random random(seed + i);
    v1::Kernel message;
    if (message.ParseFromString(damaged(kernels[random.below(kernels.size())], random)))
      tally.judge(message, random);
  }
  // Damage that never got past the parser, or never mattered, would test nothing.
  EXPECT_GT(tally.accepted, 500);
  EXPECT_GT(tally.refused, 1'000);
}

TEST(Hostile, AlteredFieldsAreRefusedOrUsable) {
  const std::vector<std::string> kernels = serialized_kernels();
  Tally tally;
  for (std::uint64_t i = 0; i < 20'000 && !HasFailure(); ++i) {
    SCOPED_TRACE("seed " + std::to_string(seed) + " iteration " + std::to_string(i));
    Random random(seed + i);
    v1::Kernel message;
    ASSERT_TRUE(message.ParseFromString(kernels[random.below(kernels.size())]));
    for (std::uint64_t edits = 1 + random.below(2); edits > 0; --edits) alter(message, random);
    tally.judge(message, random);
  }
  EXPECT_GT(tally.accepted, 500);
  EXPECT_GT(tally.refused, 5'000);
}

TEST(Hostile, DamagedTextsAreRefusedOrUsable) {
  std::vector<std::string> texts;
  for (std::uint64_t i = 0; i < 64; ++i) texts.push_back(to_text(random_kernel(seed + i)));
  int accepted = 0;
  for (std::uint64_t i = 0; i < 5'000; ++i) {
    SCOPED_TRACE("seed " + std::to_string(seed) + " iteration " + std::to_string(i));
    Random random(seed + i);
    const std::string text = damaged(texts[random.below(texts.size())], random);
    const StatusOr<Kernel> kernel = from_text(text);
    if (kernel.ok()) {
      ++accepted;
      expect_usable(*kernel, random);
    } else {
      EXPECT_TRUE(is_utf8(kernel.status().message())) << text;
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(accepted, 100);
}

}  // namespace
}  // namespace eagle::kernel
