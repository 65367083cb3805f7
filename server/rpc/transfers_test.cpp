// Values of planes over gRPC, and a caller who knows everybody's ids.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "server/rpc/testing.h"

namespace eagle::server {
namespace {

using server::testing::GraphScene;
using server::testing::SideClient;
using ::testing::HasSubstr;

class Transfers : public server::testing::Rpc {
protected:
  static v1::PlaneSlice slice_of(const v1::PlaneInfo& plane, std::vector<std::int64_t> shape,
                                 std::vector<std::int64_t> strides, std::int64_t offset = 0) {
    v1::PlaneSlice slice;
    *slice.mutable_plane() = plane.ref();
    v1::View& view = *slice.mutable_view();
    view.set_offset(offset);
    view.set_dtype(v1::DTYPE_F64);
    view.set_item_bytes(8);
    view.mutable_shape()->Add(shape.begin(), shape.end());
    view.mutable_strides()->Add(strides.begin(), strides.end());
    return slice;
  }

  Status read(const v1::PlaneSlice& slice, std::string& bytes, std::uint64_t first = 0) const {
    grpc::ClientContext context;
    prepare(context);
    v1::ReadRequest request;
    *request.mutable_slice() = slice;
    request.set_first_byte(first);
    const auto reader = planes_->Read(&context, request);
    v1::PlaneChunk chunk;
    while (reader->Read(&chunk)) {
      EXPECT_LE(chunk.data().size(), served_->daemon().limits().chunk_bytes);
      bytes += chunk.data();
    }
    return rpc::status_of(reader->Finish(), context);
  }
  Status write(const v1::PlaneSlice& slice, const std::vector<std::string>& parts,
               std::uint64_t first = 0) const {
    grpc::ClientContext context;
    prepare(context);
    v1::WriteReply reply;
    const auto writer = planes_->Write(&context, &reply);
    v1::WriteRequest request;
    *request.mutable_slice() = slice;
    request.set_first_byte(first);
    for (const std::string& part : parts) {
      request.set_data(part);
      if (!writer->Write(request)) break;
      request.clear_slice();
    }
    writer->WritesDone();
    return rpc::status_of(writer->Finish(), context);
  }
  static std::string doubles(const std::vector<double>& values) {
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(double)};
  }
  // From here on the fixture speaks for a session of its own, of another user.
  void become_another() {
    auto opened = served_->daemon().sessions().open(remote_principal(Identity::token, "mallory"), "test");
    secret_ = to_hex(opened->secret);
  }
};

TEST_F(Transfers, WhatIsWrittenIsRead) {
  const v1::PlaneInfo plane = create(64);
  const v1::PlaneSlice all = slice_of(plane, {8}, {8});
  ASSERT_TRUE(write(all, {doubles({0, 1, 2, 3}), doubles({4, 5, 6, 7})}).ok());
  std::string bytes;
  ASSERT_TRUE(read(slice_of(plane, {4}, {-16}, 56), bytes).ok());
  EXPECT_EQ(bytes, doubles({7, 5, 3, 1}));
  bytes.clear();
  ASSERT_TRUE(read(all, bytes, 48).ok()) << "it goes on where it was";
  EXPECT_EQ(bytes, doubles({6, 7}));
  ASSERT_TRUE(write(slice_of(plane, {2, 2}, {32, 8}, 8), {doubles({-1, -2})}, 16).ok());
  bytes.clear();
  ASSERT_TRUE(read(all, bytes).ok());
  EXPECT_EQ(bytes, doubles({0, 1, 2, 3, 4, -1, -2, 7}));
}

TEST_F(Transfers, LargePlanesTravelInChunks) {
  const std::size_t count = 1'500'000;  // 12 MB
  const v1::PlaneInfo plane = create(8 * count);
  v1::FillRequest fill;
  *fill.mutable_slice() = slice_of(plane, {static_cast<std::int64_t>(count)}, {8});
  fill.set_element(doubles({2.5}));
  v1::FillReply filled;
  ASSERT_TRUE(call(planes_, &v1::Planes::Stub::Fill, fill, filled).ok());
  std::string bytes;
  ASSERT_TRUE(read(fill.slice(), bytes).ok());
  EXPECT_EQ(bytes, doubles(std::vector<double>(count, 2.5)));
}

TEST_F(Transfers, SlicesThatReachOutsideAreRefusedHoweverTheyOverflow) {
  const v1::PlaneInfo plane = create(64);
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();
  std::string bytes;
  for (const v1::PlaneSlice& slice :
       {slice_of(plane, {9}, {8}), slice_of(plane, {8}, {8}, 8), slice_of(plane, {2}, {8}, -8),
        slice_of(plane, {8}, {-8}, 48), slice_of(plane, {2}, {most}), slice_of(plane, {2}, {least}),
        slice_of(plane, {3, 3}, {most, least}), slice_of(plane, {most, most}, {8, 8}),
        slice_of(plane, {-1}, {8}), slice_of(plane, {1}, {8}, most), slice_of(plane, {1}, {8}, least),
        slice_of(plane, {8}, {}), slice_of(plane, {most}, {0})}) {
    EXPECT_FALSE(read(slice, bytes).ok()) << slice.DebugString();
    EXPECT_FALSE(write(slice, {doubles({1})}).ok()) << slice.DebugString();
  }
  EXPECT_TRUE(bytes.empty());
  v1::PlaneSlice odd = slice_of(plane, {1}, {8});
  odd.mutable_view()->set_dtype(static_cast<v1::DType>(257));
  EXPECT_FALSE(read(odd, bytes).ok());
  odd.mutable_view()->set_dtype(v1::DTYPE_OTHER);
  odd.mutable_view()->set_item_bytes(0);
  EXPECT_FALSE(read(odd, bytes).ok());
}

TEST_F(Transfers, WritesThatDoNotFitAreRefusedAndTouchNothingElse) {
  const v1::PlaneInfo plane = create(64);
  const v1::PlaneSlice first = slice_of(plane, {2}, {8});
  EXPECT_EQ(write(first, {doubles({1, 2, 3})}).reason(), Reason::bad_value);
  EXPECT_EQ(write(first, {doubles({1, 2})}, 8).reason(), Reason::bad_value);
  EXPECT_EQ(write(first, {doubles({1})}, std::numeric_limits<std::uint64_t>::max()).reason(),
            Reason::bad_value);
  std::string bytes;
  EXPECT_EQ(read(first, bytes, 17).reason(), Reason::bad_value);
  EXPECT_EQ(read(first, bytes, std::numeric_limits<std::uint64_t>::max()).reason(), Reason::bad_value);
  ASSERT_TRUE(read(slice_of(plane, {6}, {8}, 16), bytes).ok());
  EXPECT_EQ(bytes, std::string(48, '\0'));
}

// With a stride of 0 a page is an array without end. Reading that is the reader's business; writing it is
// not.
TEST_F(Transfers, SlicesThatWouldBeWrittenForEverAreRefused) {
  const v1::PlaneInfo plane = create(4096);
  v1::FillRequest fill;
  *fill.mutable_slice() = slice_of(plane, {std::int64_t{1} << 58}, {0});
  fill.set_element(doubles({1}));
  v1::FillReply filled;
  EXPECT_EQ(call(planes_, &v1::Planes::Stub::Fill, fill, filled).reason(), Reason::bad_value);
  EXPECT_EQ(write(fill.slice(), {doubles({1})}).reason(), Reason::bad_value);
  *fill.mutable_slice() = slice_of(plane, {512}, {0});
  EXPECT_TRUE(call(planes_, &v1::Planes::Stub::Fill, fill, filled).ok());
  std::string bytes;
  ASSERT_TRUE(read(slice_of(plane, {2, 3}, {0, 8}), bytes).ok());
  EXPECT_EQ(bytes, doubles({1, 0, 0, 1, 0, 0}));
}

TEST_F(Transfers, ABroadcastArrayIsPublishedAsItsElements) {
  const v1::PlaneInfo plane = create(64);
  ASSERT_TRUE(write(slice_of(plane, {2}, {8}), {doubles({1, 2})}).ok());
  v1::PublishRequest publish;
  *publish.mutable_slice() = slice_of(plane, {100, 2}, {0, 8});
  publish.set_name("rows");
  v1::OpenedPlane published;
  ASSERT_TRUE(call(planes_, &v1::Planes::Stub::Publish, publish, published).ok());
  std::string bytes;
  ASSERT_TRUE(read(slice_of(published.plane(), {2}, {8}, 198 * 8), bytes).ok());
  EXPECT_EQ(bytes, doubles({1, 2}));
}

TEST_F(Transfers, RandomSlicesReadWhatAWalkOverThemReads) {
  const v1::PlaneInfo plane = create(4096);
  std::vector<double> values(512);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i);
  ASSERT_TRUE(write(slice_of(plane, {512}, {8}), {doubles(values)}).ok());
  const auto seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto one_of = [&random](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  for (int round = 0; round < 100; ++round) {
    const std::vector<std::int64_t> shape = {one_of(1, 5), one_of(1, 5)};
    const std::vector<std::int64_t> steps = {one_of(-30, 30), one_of(-8, 8)};
    const std::int64_t start = one_of(0, 511);
    std::vector<double> expected;
    bool inside = true;
    for (std::int64_t i = 0; i < shape[0]; ++i) {
      for (std::int64_t j = 0; j < shape[1]; ++j) {
        const std::int64_t at = start + i * steps[0] + j * steps[1];
        inside = inside && at >= 0 && at < 512;
        if (inside) expected.push_back(values[static_cast<std::size_t>(at)]);
      }
    }
    std::string bytes;
    const Status status = read(slice_of(plane, shape, {8 * steps[0], 8 * steps[1]}, 8 * start), bytes);
    ASSERT_EQ(status.ok(), inside) << status.to_string();
    if (inside) {
      ASSERT_EQ(bytes, doubles(expected));
    }
  }
}

// ---- clients that do not go on

// A Read that nobody reads, of far more bytes than its plane has.
class Unread {
public:
  Unread(v1::Planes::Stub& stub, const std::string& secret, const v1::PlaneSlice& slice) {
    context_.AddMetadata(rpc::session_secret_key, secret);
    v1::ReadRequest request;
    *request.mutable_slice() = slice;
    reader_ = stub.Read(&context_, request);
  }
  ~Unread() {
    context_.TryCancel();
    static_cast<void>(finish());
  }
  // The first chunk: from then on the daemon has begun.
  std::size_t first() {
    v1::PlaneChunk chunk;
    return reader_->Read(&chunk) ? chunk.data().size() : 0;
  }
  Status finish() {
    v1::PlaneChunk rest;
    while (reader_->Read(&rest)) {
    }
    return rpc::status_of(reader_->Finish(), context_);
  }

private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<v1::PlaneChunk>> reader_;
};

TEST_F(Transfers, ReadsThatNobodyReadsAreChargedAndBoundedInNumber) {
  Daemon::Options options;
  options.limits.transfers = 2;
  serve(std::move(options));
  const v1::PlaneInfo plane = create(4096);
  const v1::PlaneSlice endless = slice_of(plane, {1 << 20, 512}, {0, 8});
  const auto charged = [this] {
    return session_->tenant()->report().held[static_cast<std::size_t>(Held::plane_bytes)];
  };
  const std::uint64_t before = charged();
  {
    Unread first(*planes_, secret_, endless);
    Unread second(*planes_, secret_, endless);
    ASSERT_GT(first.first(), 0u);
    ASSERT_GT(second.first(), 0u);
    EXPECT_EQ(charged(), before + std::uint64_t{2} * 2 * served_->daemon().limits().chunk_bytes);
    std::string bytes;
    const Status third = read(slice_of(plane, {1}, {8}), bytes);
    EXPECT_EQ(third.reason(), Reason::quota) << third.to_string();
    EXPECT_THAT(third.message(), HasSubstr("(transfers)"));
    EXPECT_EQ(write(slice_of(plane, {1}, {8}), {doubles({1})}).reason(), Reason::quota);
  }
  while (session_->transfers().count() > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(charged(), before);
  std::string bytes;
  EXPECT_TRUE(read(slice_of(plane, {1}, {8}), bytes).ok());
}

TEST_F(Transfers, WhoFilledTheQuotaWithPlanesStillReadsThemOneAtATime) {
  const v1::PlaneInfo plane = create(512 << 10);
  const std::uint64_t held = session_->tenant()->report().held[static_cast<std::size_t>(Held::plane_bytes)];
  TenantPolicy policy;
  policy.quotas[static_cast<std::size_t>(Held::plane_bytes)] = held;
  session_->tenant()->set_policy(policy);
  const v1::PlaneSlice all = slice_of(plane, {64 << 10}, {8});
  std::string bytes;
  ASSERT_TRUE(read(all, bytes).ok());
  EXPECT_EQ(bytes, std::string(512 << 10, '\0'));
  Unread first(*planes_, secret_, slice_of(plane, {1 << 20, 512}, {0, 8}));
  EXPECT_EQ(first.first(), server::Transfers::least_chunk_bytes);
  const Status second = read(all, bytes);
  EXPECT_EQ(second.reason(), Reason::quota) << second.to_string();
  EXPECT_THAT(second.message(), HasSubstr("tenant_plane_bytes"));
}

TEST_F(Transfers, WhoMayNotWriteHearsSoBeforeSayingAnything) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(1));
  context.AddMetadata(rpc::session_secret_key, std::string(64, '0'));
  v1::WriteReply reply;
  const auto writer = planes_->Write(&context, &reply);
  EXPECT_EQ(rpc::status_of(writer->Finish(), context).reason(), Reason::unauthenticated);
}

// ---- a caller who knows every id

TEST_F(Transfers, WhoKnowsAllIdsOfAnotherUserGetsNothing) {
  const v1::PlaneInfo plane = create(64);
  const v1::PlaneSlice all = slice_of(plane, {8}, {8});
  ASSERT_TRUE(write(all, {doubles(std::vector<double>(8, 42.0))}).ok());
  GraphScene scene(*session_);
  const auto x = scene.plane<double>(4, 1.0);
  add_increment(scene, x);
  const std::uint64_t graph = build(scene).graph();
  const std::uint64_t owner = session_->id();
  become_another();

  std::string bytes;
  EXPECT_EQ(read(all, bytes).reason(), Reason::unknown_plane);
  EXPECT_TRUE(bytes.empty());
  EXPECT_EQ(write(all, {doubles({0})}).reason(), Reason::unknown_plane);
  EXPECT_EQ(release(plane).reason(), Reason::unknown_plane);
  v1::FillRequest fill;
  *fill.mutable_slice() = all;
  fill.set_element(doubles({0}));
  v1::FillReply filled;
  EXPECT_EQ(call(planes_, &v1::Planes::Stub::Fill, fill, filled).reason(), Reason::unknown_plane);
  v1::PublishRequest publish;
  *publish.mutable_slice() = all;
  publish.set_name("theirs");
  v1::OpenedPlane opened;
  EXPECT_EQ(call(planes_, &v1::Planes::Stub::Publish, publish, opened).reason(), Reason::unknown_plane);
  v1::ListPlanesReply listed;
  ASSERT_TRUE(call(planes_, &v1::Planes::Stub::List, v1::ListPlanesRequest(), listed).ok());
  EXPECT_EQ(listed.planes_size(), 0);

  v1::LaunchReport report;
  EXPECT_EQ(launch(graph, 1, report).reason(), Reason::unknown_graph);
  v1::BuildRequest over_theirs;
  *over_theirs.mutable_graph() = scene.message;
  v1::BuildReply built;
  EXPECT_EQ(call(graphs_, &v1::Graphs::Stub::Build, over_theirs, built).reason(), Reason::unknown_plane);
  v1::PictureRequest picture;
  picture.set_graph(graph);
  picture.set_session(owner);
  picture.set_format(v1::PICTURE_TEXT);
  v1::PictureReply drawn;
  EXPECT_EQ(call(graphs_, &v1::Graphs::Stub::Picture, picture, drawn).reason(), Reason::unknown_graph);
  v1::ListGraphsRequest everything;
  everything.set_all_sessions(true);
  v1::ListGraphsReply graphs;
  ASSERT_TRUE(call(graphs_, &v1::Graphs::Stub::List, everything, graphs).ok());
  EXPECT_EQ(graphs.graphs_size(), 0);
  v1::ReleaseGraphRequest let_go;
  let_go.set_graph(graph);
  v1::ReleaseGraphReply gone;
  EXPECT_EQ(call(graphs_, &v1::Graphs::Stub::Release, let_go, gone).reason(), Reason::unknown_graph);
  EXPECT_EQ(x.values[0], 1.0);
}

// The token of a plane is good for its own session's side connection alone.
TEST_F(Transfers, AStolenTokenStandsForNothingInAnotherSession) {
  const v1::PlaneInfo plane = create(64);
  SideClient other(served_->path());
  other.open();
  EXPECT_EQ(other.fetch({plane.token()}).error().reason(), "UNKNOWN_PLANE");
  EXPECT_TRUE(other.take_descriptors().empty());
}

TEST_F(Transfers, WhatWasGrantedForReadingIsNotWritten) {
  const auto owner = session_;
  GraphScene scene(*owner);
  const auto x = scene.plane<double>(4, 1.0);
  plane::View view;
  view.shape = {4};
  view.strides = {8};
  ASSERT_TRUE(served_->daemon().published().publish(owner, "x", {x.plane->bytes(), view, false, {"*"}}).ok());
  become_another();
  v1::OpenRequest request;
  request.set_name("x");
  v1::OpenedPlane opened;
  ASSERT_TRUE(call(planes_, &v1::Planes::Stub::Open, request, opened).ok());
  EXPECT_TRUE(opened.read_only());

  const v1::PlaneSlice all = slice_of(opened.plane(), {4}, {8});
  std::string bytes;
  ASSERT_TRUE(read(all, bytes).ok());
  EXPECT_EQ(bytes, doubles({1, 1, 1, 1}));
  EXPECT_EQ(write(all, {doubles({5})}).reason(), Reason::read_only_array);
  v1::FillRequest fill;
  *fill.mutable_slice() = all;
  fill.set_element(doubles({5}));
  v1::FillReply filled;
  EXPECT_EQ(call(planes_, &v1::Planes::Stub::Fill, fill, filled).reason(), Reason::read_only_array);
  // A graph that writes in place, over the granted plane.
  GraphScene writes = scene;
  add_increment(writes, x);
  *writes.message.mutable_planes(static_cast<int>(x.array.plane))->mutable_plane() = opened.plane().ref();
  v1::BuildRequest build_request;
  *build_request.mutable_graph() = writes.message;
  v1::BuildReply built;
  const Status status = call(graphs_, &v1::Graphs::Stub::Build, build_request, built);
  EXPECT_EQ(status.reason(), Reason::read_only_array) << status.to_string();
  EXPECT_THAT(status.message(), HasSubstr("increment"));
  EXPECT_EQ(x.values[0], 1.0);
}

TEST_F(Transfers, AGrantedPlanePassedOnIsACopy) {
  const auto owner = session_;
  GraphScene scene(*owner);
  const auto x = scene.plane<double>(4, 1.0);
  plane::View view;
  view.shape = {4};
  view.strides = {8};
  ASSERT_TRUE(served_->daemon().published().publish(owner, "x", {x.plane->bytes(), view, false, {"*"}}).ok());
  become_another();
  v1::OpenRequest request;
  request.set_name("x");
  v1::OpenedPlane opened;
  ASSERT_TRUE(call(planes_, &v1::Planes::Stub::Open, request, opened).ok());
  v1::PublishRequest publish;
  *publish.mutable_slice() = slice_of(opened.plane(), {4}, {8});
  publish.set_name("mine now");
  publish.add_to("*");
  v1::OpenedPlane published;
  ASSERT_TRUE(call(planes_, &v1::Planes::Stub::Publish, publish, published).ok());
  EXPECT_TRUE(published.moved());
  x.values[0] = 9.0;
  std::string bytes;
  ASSERT_TRUE(read(slice_of(published.plane(), {4}, {8}), bytes).ok());
  EXPECT_EQ(bytes, doubles({1, 1, 1, 1}));
}

}  // namespace
}  // namespace eagle::server
