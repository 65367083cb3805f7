#include "server/rpc/weight.h"

#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/stubs/logging.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "eagle/v1/graph.pb.h"
#include "eagle/v1/service.pb.h"
#include "proto/testing_mutator.h"

namespace eagle::server {
namespace {

using google::protobuf::Message;

std::optional<Weight> weight_of(const google::protobuf::Descriptor& type, const std::string& bytes,
                                int block = -1, std::uint64_t most = UINT64_MAX) {
  google::protobuf::io::ArrayInputStream stream(bytes.data(), static_cast<int>(bytes.size()), block);
  return weigh(shape_of(type), stream, most);
}

// A request with about everything in it.
v1::BuildRequest request() {
  v1::BuildRequest made;
  v1::GraphDescription& graph = *made.mutable_graph();
  graph.set_name("a graph with a name that has no room in the text itself");
  for (int i = 0; i < 20; ++i) {
    v1::Kernel& kernel = *graph.add_kernels();
    kernel.set_name("kernel");
    for (int j = 0; j < 5; ++j) kernel.add_arguments()->set_name("an argument");
    v1::Op& op = *kernel.mutable_body()->add_ops();
    for (int j = 0; j < 9; ++j) op.add_operands(static_cast<std::uint32_t>(j) * 1000);
    op.add_regions()->add_yields(1);
    v1::PlaneDeclaration& plane = *graph.add_planes();
    plane.mutable_plane()->set_id(UINT64_MAX);
    plane.set_label("plane");
    v1::KernelLaunch& node = *graph.add_stages()->mutable_node()->mutable_kernel();
    v1::View& view = *node.add_bindings()->mutable_view();
    for (int j = 0; j < 4; ++j) view.add_shape(-j);
    graph.add_source_files("a file");
  }
  return made;
}

TEST(Weight, IsNoLessThanWhatTheParsedMessageTakes) {
  const google::protobuf::LogSilencer silence;  // it logs names that are not UTF-8
  constexpr std::uint64_t seed = 20261130;
  testing::MessageMutator mutator(seed);
  int parsed = 0;
  for (int i = 0; i < 3000; ++i) {
    v1::BuildRequest message = request();
    for (int j = 0; j < 5; ++j) mutator.change(message);
    std::string bytes = message.SerializeAsString();
    if (i % 2 == 1) bytes = mutator.damaged(std::move(bytes));
    v1::BuildRequest again;
    if (!again.ParseFromString(bytes)) continue;
    ++parsed;
    const auto weight = weight_of(*v1::BuildRequest::descriptor(), bytes);
    ASSERT_TRUE(weight) << "seed " << seed << ", case " << i << ": what can be parsed can be weighed";
    ASSERT_GE(weight->bytes, again.SpaceUsedLong()) << "seed " << seed << ", case " << i;
  }
  EXPECT_GT(parsed, 1500);
}

TEST(Weight, OfAnUsualRequestIsWithinItsFactor) {
  const std::string bytes = request().SerializeAsString();
  const auto weight = weight_of(*v1::BuildRequest::descriptor(), bytes);
  ASSERT_TRUE(weight);
  EXPECT_LT(weight->bytes, 20 * bytes.size());
  EXPECT_LT(weight->bytes, 3 * request().SpaceUsedLong());
}

TEST(Weight, CountsPartsWhereverTheBytesAreCut) {
  v1::ReleasePlanesRequest request;
  for (int i = 0; i < 1000; ++i) request.add_planes()->set_id(1u << 20);
  const std::string bytes = request.SerializeAsString();
  for (const int block : {-1, 1, 2, 3, 7, 4096}) {
    const auto weight = weight_of(*v1::ReleasePlanesRequest::descriptor(), bytes, block);
    ASSERT_TRUE(weight) << block;
    EXPECT_EQ(weight->parts, 1000u) << block;
  }
}

TEST(Weight, CountsNumbersOfListsAndFieldsThatNobodyKnows) {
  const auto& type = *v1::RetainRequest::descriptor();
  EXPECT_EQ(weight_of(type, {"\x12\x03\x01\x02\x03", 5})->parts, 3u) << "packed";
  EXPECT_EQ(weight_of(type, {"\x10\x01\x10\x02", 4})->parts, 2u) << "one by one";
  EXPECT_EQ(weight_of(type, {"\xf8\x3e\x00\xf8\x3e\x00", 6})->parts, 2u) << "unknown numbers";
  EXPECT_EQ(weight_of(type, {"\xfa\x3e\x02xy", 5})->parts, 1u) << "an unknown text";
  EXPECT_EQ(weight_of(type, {"\xfb\x3e\xfb\x3e\xfc\x3e\xfc\x3e", 8})->parts, 2u) << "groups in each other";
  EXPECT_EQ(weight_of(type, {})->parts, 0u);
}

TEST(Weight, LooksNoFurtherThanItHasTo) {
  const auto& type = *v1::RetainRequest::descriptor();
  std::string bytes;
  for (int i = 0; i < 1000; ++i) bytes += {'\x0a', '\0'};
  bytes += {'\x12', '\x64'};  // a list of 100 numbers
  bytes += std::string(100, '\1');
  const Weight whole = *weight_of(type, bytes);
  EXPECT_EQ(whole.parts, 1100u);
  EXPECT_EQ(weight_of(type, bytes, -1, whole.bytes)->parts, 1100u);
  for (const std::uint64_t part : {2u, 3u, 10u}) {
    const auto found = weight_of(type, bytes + '\x0f', -1, whole.bytes / part);
    ASSERT_TRUE(found) << "what comes later is not looked at";
    EXPECT_GT(found->bytes, whole.bytes / part);
    EXPECT_LT(found->bytes, whole.bytes / part + 500);
    EXPECT_LT(found->parts, whole.parts);
  }
}

TEST(Weight, WhatCannotBeAMessageHasNone) {
  const auto& type = *v1::ReleasePlanesRequest::descriptor();
  EXPECT_FALSE(weight_of(type, {"\x00", 1})) << "a field of number 0";
  EXPECT_FALSE(weight_of(type, {"\x0f", 1})) << "a kind of field that is none";
  EXPECT_FALSE(weight_of(type, {"\xfc\x3e", 2})) << "the end of a group that never began";
  EXPECT_FALSE(weight_of(type, {"\xfb\x3e", 2})) << "a group that never ends";
  EXPECT_FALSE(weight_of(type, {"\xfa\x3e\x05xy", 5})) << "a text that is cut short";
  EXPECT_FALSE(weight_of(type, std::string(11, '\xff'))) << "a number that never ends";
  std::string deep;
  for (int i = 0; i < 200; ++i) deep += "\xfb\x3e";
  for (int i = 0; i < 200; ++i) deep += "\xfc\x3e";
  EXPECT_FALSE(weight_of(type, deep)) << "200 groups in each other";
}

}  // namespace
}  // namespace eagle::server
