// Descriptions that were damaged on the way or made to harm: whatever the bytes, reading gives a graph or an
// error, and what it accepts can be looked at and lowered.
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <google/protobuf/stubs/logging.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "engine/graph/address.h"
#include "engine/graph/edges.h"
#include "engine/graph/graph.h"
#include "engine/graph/races.h"
#include "engine/graph/random_graph.h"
#include "engine/graph/run_plan.h"
#include "engine/graph/schedule.h"
#include "engine/graph/scratch.h"

namespace eagle::graph {
namespace {

// Changes, drops, repeats or moves a few bytes.
std::string damaged(std::string bytes, std::mt19937_64& random) {
  const auto position = [&] { return static_cast<std::size_t>(random() % (bytes.size() + 1)); };
  for (std::uint64_t times = 1 + random() % 4; times > 0 && !bytes.empty(); --times) {
    const std::size_t at = position() % bytes.size();
    switch (random() % 5) {
      case 0:
        bytes[at] = static_cast<char>(random());
        break;
      case 1:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8));
        break;
      case 2:
        bytes.erase(at, 1 + random() % 8);
        break;
      case 3:
        bytes.insert(at, bytes.substr(position() % bytes.size(), random() % 32));
        break;
      default:
        bytes[at] = static_cast<char>(random() % 2 == 0 ? 0xff : 0x7f);
        break;
    }
  }
  return bytes;
}

void use(const Graph& graph) {
  const std::vector<Leaf> all = leaves(graph);
  for (const Edge& edge : edges(graph)) {
    ASSERT_LT(edge.source, edge.destination);
    ASSERT_LT(edge.destination, all.size());
  }
  const Status races = check_races(graph);
  ASSERT_TRUE(races.ok() || races.reason() == Reason::racing_siblings) << races.to_string();
  const StatusOr<ScratchLayout> scratch = lay_out_scratch(graph);
  ASSERT_TRUE(scratch.ok() || scratch.status().reason() == Reason::scratch_plane);
  ASSERT_TRUE(check_same_structure(graph, graph).ok());
  const StatusOr<std::vector<Target>> found = resolve(graph, {"", {}, "x"}, Wanted::plane, "rebind");
  ASSERT_TRUE(found.ok() || found.status().reason() == Reason::unknown_name);
  const RunPlan plan = lower(graph, schedule_of(graph, 4));
  ASSERT_GE(plan.program.size() + plan.branches.size(), graph.stages.size());
}

// Reads, and uses what was accepted. Returns whether it was.
bool survives(const v1::GraphDescription& message, PrivateKernelPlanes planes) {
  const StatusOr<Graph> graph = read(message, planes);
  if (!graph.ok()) {
    EXPECT_NE(graph.status().reason(), Reason::internal);
    EXPECT_FALSE(graph.status().message().empty());
    EXPECT_LT(graph.status().message().size(), 4000U);
    return false;
  }
  use(*graph);
  return true;
}

TEST(Hostile, DamagedBytesNeverCrash) {
  constexpr std::uint64_t seed = 99;
  SCOPED_TRACE("seed " + std::to_string(seed));
  // Parsing reports every name that is not UTF-8 in a log; here that is expected.
  google::protobuf::LogSilencer silence;
  std::mt19937_64 random(seed);
  int parsed = 0;
  for (int round = 0; round < 400; ++round) {
    const testing::Description original = testing::random_description(random);
    const std::string bytes = original.message.SerializeAsString();
    for (int i = 0; i < 50; ++i) {
      SCOPED_TRACE("round " + std::to_string(round) + "." + std::to_string(i));
      v1::GraphDescription message;
      if (!message.ParseFromString(damaged(bytes, random))) continue;
      ++parsed;
      survives(message, i % 2 == 0 ? PrivateKernelPlanes::allowed : PrivateKernelPlanes::refused);
    }
  }
  EXPECT_GT(parsed, 1000);
}

// Changes one field somewhere in a message: numbers become wild or slightly off, parts vanish or double.
class Mutator {
public:
  explicit Mutator(std::mt19937_64& random) : random_(random) {}

  void mutate(google::protobuf::Message& message) {
    std::vector<google::protobuf::Message*> all;
    collect(message, all);
    change(*all[random_() % all.size()]);
  }

private:
  using Field = google::protobuf::FieldDescriptor;

  static void collect(google::protobuf::Message& message, std::vector<google::protobuf::Message*>& all) {
    all.push_back(&message);
    const google::protobuf::Reflection& reflection = *message.GetReflection();
    std::vector<const Field*> fields;
    reflection.ListFields(message, &fields);
    for (const Field* const field : fields) {
      if (field->cpp_type() != Field::CPPTYPE_MESSAGE) continue;
      if (!field->is_repeated()) {
        collect(*reflection.MutableMessage(&message, field), all);
        continue;
      }
      for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
        collect(*reflection.MutableRepeatedMessage(&message, field, i), all);
      }
    }
  }

  void change(google::protobuf::Message& message) {
    const google::protobuf::Descriptor& type = *message.GetDescriptor();
    if (type.field_count() == 0) return;
    const Field* const field =
        type.field(static_cast<int>(random_() % static_cast<std::uint64_t>(type.field_count())));
    const google::protobuf::Reflection& reflection = *message.GetReflection();
    const int size = field->is_repeated() ? reflection.FieldSize(message, field) : 0;
    if (random_() % 8 == 0) return reflection.ClearField(&message, field);
    if (size > 0 && random_() % 4 == 0) return reflection.RemoveLast(&message, field);
    if (size > 1 && random_() % 3 == 0) return reflection.SwapElements(&message, field, 0, size - 1);
    set(message, *field, reflection);
  }

  void set(google::protobuf::Message& message, const Field& field,
           const google::protobuf::Reflection& reflection) {
    const bool add = field.is_repeated();
    switch (field.cpp_type()) {
      case Field::CPPTYPE_INT64:
        return add ? reflection.AddInt64(&message, &field, number())
                   : reflection.SetInt64(&message, &field, number());
      case Field::CPPTYPE_UINT64:
        return reflection.SetUInt64(&message, &field, static_cast<std::uint64_t>(number()));
      case Field::CPPTYPE_UINT32: {
        const auto value = static_cast<std::uint32_t>(number());
        return add ? reflection.AddUInt32(&message, &field, value)
                   : reflection.SetUInt32(&message, &field, value);
      }
      case Field::CPPTYPE_ENUM:
        return reflection.SetEnumValue(&message, &field, static_cast<int>(random_() % 70));
      case Field::CPPTYPE_MESSAGE:
        if (add) {
          const int size = reflection.FieldSize(message, &field);
          google::protobuf::Message* const fresh = reflection.AddMessage(&message, &field);
          if (size > 0) fresh->CopyFrom(reflection.GetRepeatedMessage(message, &field, 0));
        } else {
          reflection.MutableMessage(&message, &field);
        }
        return;
      case Field::CPPTYPE_BOOL:
        return reflection.SetBool(&message, &field, random_() % 2 == 0);
      case Field::CPPTYPE_STRING: {
        const std::string name(random_() % 3, static_cast<char>('a' + random_() % 30));
        return add ? reflection.AddString(&message, &field, name)
                   : reflection.SetString(&message, &field, name);
      }
      default:
        return;
    }
  }

  std::int64_t number() {
    if (random_() % 2 == 0) return static_cast<std::int64_t>(random_() % 12);
    const auto wild = static_cast<std::int64_t>(random_() >> (random_() % 64));
    return random_() % 2 == 0 ? wild : -wild;
  }

  std::mt19937_64& random_;
};

TEST(Hostile, WrongMessagesNeverCrash) {
  constexpr std::uint64_t seed = 2024;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  Mutator mutator(random);
  int accepted = 0;
  constexpr int rounds = 400;
  constexpr int changes = 50;
  for (int round = 0; round < rounds; ++round) {
    const testing::Description original = testing::random_description(random);
    for (int i = 0; i < changes; ++i) {
      SCOPED_TRACE("round " + std::to_string(round) + "." + std::to_string(i));
      v1::GraphDescription message = original.message;
      for (std::uint64_t times = 1 + random() % 3; times > 0; --times) mutator.mutate(message);
      accepted +=
          survives(message, i % 2 == 0 ? PrivateKernelPlanes::allowed : PrivateKernelPlanes::refused) ? 1 : 0;
    }
  }
  EXPECT_GT(accepted, rounds * changes / 20);
  EXPECT_LT(accepted, rounds * changes * 19 / 20);
}

TEST(Hostile, NestingIsBoundedBeforeItIsFollowed) {
  v1::GraphDescription message;
  v1::PlaneDeclaration& plane = *message.add_planes();
  plane.mutable_private_memory();
  plane.set_bytes(8);
  v1::Stage* stage = message.add_stages();
  for (int depth = 0; depth < 500; ++depth) {
    v1::Skippable& skippable = *stage->mutable_node()->mutable_skippable();
    testing::to_message("c", plane::testing::array({}, plane::DType::i64),
                        *skippable.mutable_guard()->mutable_count());
    stage = skippable.add_body();
  }
  *stage->mutable_node() = testing::host("end", {}, {});
  EXPECT_EQ(read(message, PrivateKernelPlanes::allowed).status().reason(), Reason::graph_limit);
}

TEST(Hostile, StridesAndShapesOfAnySizeAreOnlyNumbers) {
  constexpr std::uint64_t seed = 4;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  const auto wild = [&]() -> std::int64_t {
    const auto number = static_cast<std::int64_t>(random() >> (random() % 64));
    return random() % 2 == 0 ? number : -number;
  };
  for (int round = 0; round < 20'000; ++round) {
    testing::Description d;
    d.array({std::int64_t{1} << (random() % 50)}, plane::DType::boolean);
    for (int n = 0; n < 2; ++n) {
      testing::View view{
          0,  wild(), plane::DType::other, static_cast<std::uint32_t>(random() >> (32 + random() % 32)),
          {}, {}};
      for (std::uint64_t k = random() % 5; k > 0; --k) {
        view.shape.push_back(random() % 3 == 0 ? wild() : static_cast<std::int64_t>(random() % 100));
        view.strides.push_back(random() % 2 == 0 ? wild() : static_cast<std::int64_t>(random() % 1000));
      }
      if (random() % 2 == 0) view.offset = static_cast<std::int64_t>(random() % 1000);
      d.add(testing::host("h", {{"r", view}}, {{"w", view}}));
    }
    const StatusOr<Graph> graph = d.try_read();
    if (graph.ok()) use(*graph);
  }
}

}  // namespace
}  // namespace eagle::graph
