// Sessions recorded and replayed in process, and files that are no recordings. With a daemon:
// tests/integration/test_eaglectl.py.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>

#include "client/record/checker.h"
#include "client/record/format.h"
#include "client/record/replay.h"
#include "eagle/client/graph.h"
#include "eagle/client/kernel_builder.h"
#include "eagle/client/session.h"
#include "eagle/v1/record.pb.h"

namespace eagle::record {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

template <typename T>
T must(StatusOr<T> result) {
  EXPECT_TRUE(result.ok()) << result.status().to_string();
  return std::move(*result);
}

// y = a x + 1
Kernel affine() {
  KernelBuilder b("affine");
  const auto x = b.scalar("x");
  const auto a = b.param("a");
  b.output("y", b.add(b.mul(a, x), b.real(1.0)));
  return must(b.finish());
}

class Recording : public ::testing::Test {
protected:
  void SetUp() override {
    char name[] = "/tmp/eagle-record-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    folder_ = name;
    path_ = folder_ / "session.eaglerec";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] Session session(bool contents = true, std::uint64_t most_bytes = 1u << 30) const {
    LocalOptions options;
    options.threads = 2;
    options.recording = {path_, contents, most_bytes};
    return must(local(options));
  }

  [[nodiscard]] std::vector<Replayed> replayed(bool verify = true) const {
    std::vector<Replayed> all;
    const File file = must(File::open(path_));
    ReplayOptions options;
    options.verify = verify;
    const Session fresh = must(local({.threads = 1}));
    const Status done =
        replay(*fresh.host(), file, options, [&](const Replayed& one) { all.push_back(one); });
    EXPECT_TRUE(done.ok()) << done.to_string();
    return all;
  }

  [[nodiscard]] std::string bytes() const {
    std::ifstream file(path_, std::ios::binary);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }
  void put(const std::string& content) const { std::ofstream(path_, std::ios::binary) << content; }

  // The launches of a graph over two arrays, of which the program changes one in between.
  void record_launches(const Session& in) const {
    const auto x = must(in.full<double>({1000}, 2.0));
    const auto y = must(in.zeros<double>({1000}));
    Graph graph(in, {.name = "step"});
    ASSERT_TRUE(graph.add({std::make_shared<const Kernel>(affine()), {{"x", x}, {"y", y}, {"a", 3.0}}}).ok());
    ASSERT_TRUE(graph.build().ok());
    ASSERT_TRUE(graph.launch().ok());
    EXPECT_EQ(y[999], 7.0);
    x[999] = 10.0;
    ASSERT_TRUE(graph.launch(3).ok());
    EXPECT_EQ(y[999], 31.0);
    ASSERT_TRUE(graph.update({{{.node = {}, .leaf = {}, .name = "a"}, 5.0}}).ok());
    ASSERT_TRUE(graph.launch().ok());
    EXPECT_EQ(y[999], 51.0);
  }

  std::filesystem::path folder_;
  std::filesystem::path path_;
};

TEST_F(Recording, IsReplayedWithTheSameBits) {
  {
    const Session in = session();
    record_launches(in);
  }
  const auto all = replayed();
  ASSERT_EQ(all.size(), 5u);  // build, launch, launch, update, launch
  for (const Replayed& one : all) {
    EXPECT_TRUE(one.same()) << one.kind << " " << one.message << one.counted;
    EXPECT_EQ(one.reason, "");
    EXPECT_EQ(one.bits, one.kind == "launch" ? Replayed::Bits::equal : Replayed::Bits::not_compared);
  }
  EXPECT_EQ(all[1].graph, "step");
}

TEST_F(Recording, SaysWhatItHolds) {
  {
    const Session in = session();
    record_launches(in);
  }
  const Summary found = must(summary_of(must(File::open(path_))));
  EXPECT_EQ(found.client, "record_test");
  EXPECT_EQ(found.transport, "in process");
  EXPECT_TRUE(found.with_contents);
  EXPECT_FALSE(found.cut_short);
  EXPECT_EQ(found.requests, 5u);
  EXPECT_EQ(found.launches, 3u);
  EXPECT_EQ(found.failed, 0u);
  EXPECT_EQ(found.planes, 2u);
  struct stat info {};
  ASSERT_EQ(::stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);  // it may hold what arrays held
}

TEST_F(Recording, WithoutContentsHasNoValues) {
  {
    const Session in = session(false);
    const auto x = must(in.zeros<double>({100'000}));
    for (std::int64_t i = 0; i < 100'000; ++i) x[i] = static_cast<double>(i);
    const auto y = must(in.zeros<double>({100'000}));
    Graph graph(in);
    ASSERT_TRUE(graph.add({std::make_shared<const Kernel>(affine()), {{"x", x}, {"y", y}, {"a", 3.0}}}).ok());
    ASSERT_TRUE(graph.build().ok());
    ASSERT_TRUE(graph.launch().ok());
  }
  EXPECT_LT(bytes().size(), 10'000u);
  for (const Replayed& one : replayed()) {
    EXPECT_TRUE(one.same());
    EXPECT_EQ(one.bits, Replayed::Bits::not_compared);
  }
}

TEST_F(Recording, ValuesThatAreNotTheRecordedOnesAreFound) {
  {
    const Session in = session();
    record_launches(in);
  }
  // The first piece of values is another one: what is computed of it is, too.
  const File file = must(File::open(path_));
  const std::filesystem::path other = folder_ / "other";
  {
    Writer writer = must(Writer::create(other, 1u << 30));
    std::uint64_t place = File::first_place;
    v1::RecordEntry entry;
    bool changed = false;
    while (must(file.next(place, entry))) {
      if (entry.has_bytes() && !changed) {
        (*entry.mutable_bytes()->mutable_data())[1] ^= 1;
        changed = true;
      }
      ASSERT_TRUE(writer.append(entry).ok());
    }
    ASSERT_TRUE(changed);
  }
  path_ = other;
  bool different = false;
  for (const Replayed& one : replayed()) different = different || one.bits == Replayed::Bits::different;
  EXPECT_TRUE(different);
}

TEST_F(Recording, CallablesAreReplayedByWhatTheyLeft) {
  {
    const Session in = session();
    const auto x = must(in.full<double>({8}, 1.0));
    const auto y = must(in.zeros<double>({8}));
    Graph graph(in);
    ASSERT_TRUE(graph
                    .add_node(opaque(
                                  [&] {
                                    for (int i = 0; i < 8; ++i) x[i] += 0.5;
                                    return Status();
                                  },
                                  {{{"x", x}}, {{"x", x}}}),
                              "host")
                    .ok());
    ASSERT_TRUE(graph.add({std::make_shared<const Kernel>(affine()), {{"x", x}, {"y", y}, {"a", 2.0}}}).ok());
    ASSERT_TRUE(graph.build().ok());
    ASSERT_TRUE(graph.launch(2).ok());
    EXPECT_EQ(y[0], 5.0);  // x is 2
  }
  const auto all = replayed();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[1].bits, Replayed::Bits::equal) << all[1].message;
}

TEST_F(Recording, AFailingLaunchFailsAgainWithItsReason) {
  {
    const Session in = session();
    const auto x = must(in.full<double>({8}, 1.0));
    int calls = 0;
    Graph graph(in);
    ASSERT_TRUE(
        graph
            .add_node(
                opaque(
                    [&] { return ++calls < 3 ? Status() : Status(Reason::bad_value, "the sensor has gone"); },
                    {{{"x", x}}, {{"x", x}}}),
                "host")
            .ok());
    ASSERT_TRUE(graph.build().ok());
    ASSERT_FALSE(graph.launch(5).ok());
  }
  const auto all = replayed();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[1].recorded_reason, "HOST_CALL_FAILED");
  EXPECT_EQ(all[1].reason, "HOST_CALL_FAILED");
  EXPECT_THAT(all[1].message, HasSubstr("the sensor has gone"));
  EXPECT_THAT(all[1].message, HasSubstr("after 2 whole launches"));
  EXPECT_TRUE(all[1].same());
}

TEST_F(Recording, ARefusedBuildIsRefusedAgain) {
  {
    const Session in = session(false);
    const auto x = must(in.full<double>({8}, 1.0));
    const auto y = must(in.zeros<double>({8}));
    const BoundPlan plan = {std::make_shared<const Kernel>(affine()), {{"x", x}, {"y", y}, {"a", 2.0}}};
    Graph graph(in);
    ASSERT_TRUE(graph.add_group({{{{"one", plan}}}, {{{"two", plan}}}}).ok());
    ASSERT_FALSE(graph.build().ok());
  }
  const auto all = replayed();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].recorded_reason, "RACING_SIBLINGS");
  EXPECT_EQ(all[0].reason, "RACING_SIBLINGS");
}

TEST_F(Recording, RunsAreReplayed) {
  KernelBuilder k("decay");
  const auto x = k.state("x", {});
  k.terminated("done");
  const auto next = k.mul(x, k.real(0.5));
  k.commit("x", next);
  k.commit("done", k.lt(next, k.real(1e-3)));
  const auto kernel = std::make_shared<const Kernel>(must(k.finish()));
  {
    const Session in = session();
    const auto x0 = must(in.zeros<double>({100}));
    for (std::int64_t i = 0; i < 100; ++i) x0[i] = 1.0 + static_cast<double>(i);
    const auto done = must(in.zeros<bool>({100}));
    SimulateOptions options;
    options.max_steps = 100;
    ASSERT_TRUE(in.simulate({kernel, {{"x", x0}, {"done", done}}}, options).ok());
  }
  const auto all = replayed();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].kind, "run");
  EXPECT_TRUE(all[0].same()) << all[0].counted << all[0].message;
  EXPECT_EQ(all[0].bits, Replayed::Bits::equal);
}

TEST_F(Recording, AProcessThatDiesLeavesWhatItHadAsked) {
  {
    const Session in = session();
    record_launches(in);
  }
  const std::string whole = bytes();
  const auto all = replayed();
  // Cut in the middle of the last outcome: the launch is there, and nothing says what came of it.
  put(whole.substr(0, whole.size() - 60));
  const Summary found = must(summary_of(must(File::open(path_))));
  EXPECT_TRUE(found.cut_short);
  EXPECT_EQ(found.requests, 5u);
  const auto cut = replayed();
  ASSERT_EQ(cut.size(), all.size());
  EXPECT_FALSE(cut.back().finished);
  EXPECT_TRUE(cut.front().same());
}

TEST_F(Recording, EndsAtItsBoundAndTheSessionGoesOn) {
  ::testing::internal::CaptureStderr();
  {
    const Session in = session(true, 4096);
    record_launches(in);
  }
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("EAGLE_RECORD_BYTES"));
  EXPECT_LE(bytes().size(), 4096u);
  EXPECT_TRUE(summary_of(must(File::open(path_))).ok());
}

TEST_F(Recording, OtherFilesAreNotReplaced) {
  put("precious");
  LocalOptions options;
  options.recording.file = path_;
  const Status refused = local(options).status();
  EXPECT_EQ(refused.reason(), Reason::bad_value);
  EXPECT_THAT(refused.message(), HasSubstr("is no recording"));
  EXPECT_EQ(bytes(), "precious");
  options.recording.file = folder_ / "no" / "folder";
  EXPECT_EQ(local(options).status().reason(), Reason::bad_value);
}

TEST_F(Recording, TheEnvironmentNamesAFileForEachSession) {
  ::setenv("EAGLE_RECORD", path_.c_str(), 1);
  put("precious");  // as an earlier recording, and those of other processes, is left where it is
  {
    const Session first = must(local());
    const Session second = must(local());
  }
  ::setenv("EAGLE_RECORD_BYTES", "many", 1);
  EXPECT_THAT(local().status().message(), HasSubstr("EAGLE_RECORD_BYTES"));
  ::unsetenv("EAGLE_RECORD_BYTES");
  ::unsetenv("EAGLE_RECORD");
  EXPECT_EQ(bytes(), "precious");
  EXPECT_TRUE(File::open(path_.string() + ".2").ok());
  EXPECT_TRUE(File::open(path_.string() + ".3").ok());
}

// ---- files of anybody's

TEST_F(Recording, WhatIsNoneIsRefused) {
  EXPECT_EQ(File::open(path_).status().reason(), Reason::bad_value);
  put("");
  EXPECT_EQ(File::open(path_).status().reason(), Reason::bad_value);
  put("EAGLEREX rest");
  EXPECT_THAT(File::open(path_).status().message(), HasSubstr("does not begin as one"));
  EXPECT_EQ(File::open(folder_).status().reason(), Reason::bad_value);
  put("EAGLEREC");
  EXPECT_THAT(summary_of(must(File::open(path_))).status().message(), HasSubstr("no entry"));
}

TEST_F(Recording, DamageIsNamedByItsPlace) {
  {
    const Session in = session();
    record_launches(in);
  }
  std::string damaged = bytes();
  damaged[100] = static_cast<char>(damaged[100] ^ 0x40);
  put(damaged);
  const Status refused = summary_of(must(File::open(path_))).status();
  EXPECT_EQ(refused.reason(), Reason::bad_message);
  EXPECT_THAT(refused.message(), HasSubstr("the entry at byte"));
}

// Each thing that the checker promises, by breaking it.
class Entries : public ::testing::Test {
protected:
  void SetUp() override {
    v1::RecordEntry header;
    header.mutable_header()->set_version(format_version);
    ASSERT_TRUE(checker_.accept(header).ok());
    v1::RecordEntry plane;
    plane.mutable_plane()->set_plane(1);
    plane.mutable_plane()->set_bytes(64);
    ASSERT_TRUE(checker_.accept(plane).ok());
    v1::RecordEntry build;
    build.mutable_request()->set_number(1);
    build.mutable_request()->set_graph(1);
    build.mutable_request()->add_planes(1);
    build.mutable_request()->mutable_build()->add_planes()->mutable_plane();
    ASSERT_TRUE(checker_.accept(build).ok());
  }
  void refused(const v1::RecordEntry& entry, const std::string& what) {
    const Status status = checker_.accept(entry);
    EXPECT_FALSE(status.ok()) << entry.ShortDebugString();
    EXPECT_THAT(status.message(), HasSubstr(what));
  }
  Checker checker_{
      {.planes = 2, .plane_bytes = 100, .graphs = 2, .requests = 4, .host_calls = 1, .open_requests = 2}};
};

TEST_F(Entries, OfAnotherVersionAreRefused) {
  Checker fresh;
  v1::RecordEntry entry;
  entry.mutable_header()->set_version(format_version + 1);
  EXPECT_THAT(fresh.accept(entry).message(), HasSubstr("version 2"));
  v1::RecordEntry plane;
  plane.mutable_plane()->set_plane(1);
  EXPECT_THAT(fresh.accept(plane).message(), HasSubstr("no header"));
  v1::RecordEntry second;
  second.mutable_header()->set_version(format_version);
  refused(second, "second header");
  refused({}, "kind");
}

// A replay looks at an outcome when it makes the request.
TEST_F(Entries, OutcomesTellOfPlanesThatTheirRequestCouldKnow) {
  v1::RecordEntry late;
  late.mutable_plane()->set_plane(2);
  late.mutable_plane()->set_bytes(8);
  ASSERT_TRUE(checker_.accept(late).ok());
  v1::RecordEntry outcome;
  outcome.mutable_outcome()->set_request(1);
  v1::RecordDigest& digest = *outcome.mutable_outcome()->add_digests();
  digest.set_plane(2);
  digest.set_sha256(std::string(32, 'd'));
  refused(outcome, "tells of plane 2, and its request had 1");
}

TEST_F(Entries, ThatNameWhatIsNotThereAreRefused) {
  v1::RecordEntry entry;
  entry.mutable_plane()->set_plane(3);
  refused(entry, "count up");
  entry.mutable_plane()->set_plane(2);
  entry.mutable_plane()->set_device(std::string(129, 'c'));
  refused(entry, "too long");
  entry.mutable_plane()->set_plane(2);
  entry.mutable_plane()->set_device("cuda:0");
  entry.mutable_plane()->set_private_memory(true);
  refused(entry, "private memory on a GPU");
  entry.mutable_fresh()->set_plane(2);
  refused(entry, "no plane 2");
  entry.mutable_fresh()->set_plane(0);
  refused(entry, "no plane 0");
  entry.mutable_bytes()->set_plane(1);
  entry.mutable_bytes()->set_offset(60);
  entry.mutable_bytes()->set_data("12345");
  refused(entry, "which has 64");
  entry.mutable_fresh()->set_plane(1);
  entry.mutable_fresh()->set_offset(1);
  entry.mutable_fresh()->set_bytes(~std::uint64_t{0});  // the sum overflows
  refused(entry, "which has 64");
  entry.mutable_release()->set_graph(2);
  refused(entry, "not there");
  entry.mutable_outcome()->set_request(9);
  refused(entry, "not under way");
  entry.mutable_host_call()->set_request(9);
  refused(entry, "not under way");
  v1::RecordRequest& request = *entry.mutable_request();
  request.set_number(3);
  request.set_graph(1);
  request.mutable_launch();
  refused(entry, "count up");
  request.set_number(2);
  request.set_graph(7);
  refused(entry, "no graph 7");
  request.set_graph(1);
  request.mutable_launch()->set_count(-1);
  refused(entry, "fewer than 0");
  request.mutable_run()->mutable_run()->add_planes()->mutable_plane();
  refused(entry, "has 1");
  request.add_planes(0);
  refused(entry, "scratch");
  entry.set_at_s(-1);
  refused(entry, "no time");
}

TEST_F(Entries, OverABoundAreRefusedByName) {
  v1::RecordEntry entry;
  entry.mutable_plane()->set_plane(2);
  entry.mutable_plane()->set_bytes(37);
  refused(entry, "more than 100 bytes");
  entry.mutable_plane()->set_bytes(~std::uint64_t{0});
  refused(entry, "more than 100 bytes");
  entry.mutable_plane()->set_bytes(36);
  ASSERT_TRUE(checker_.accept(entry).ok());
  entry.mutable_plane()->set_plane(3);
  entry.mutable_plane()->set_bytes(0);
  refused(entry, "more than 2 planes");
  v1::RecordEntry launch;
  launch.mutable_request()->set_number(2);
  launch.mutable_request()->set_graph(1);
  launch.mutable_request()->mutable_launch()->set_count(1);
  ASSERT_TRUE(checker_.accept(launch).ok());
  launch.mutable_request()->set_number(3);
  refused(launch, "without an outcome");
  v1::RecordEntry call;
  call.mutable_host_call()->set_request(2);
  ASSERT_TRUE(checker_.accept(call).ok());
  refused(call, "host calls");
  v1::RecordEntry outcome;
  outcome.mutable_outcome()->set_request(2);
  outcome.mutable_outcome()->add_digests()->set_plane(1);
  refused(outcome, "digest");
  v1::RecordEntry end;
  end.mutable_end();
  ASSERT_TRUE(checker_.accept(end).ok());
  refused(end, "after its end");
}

TEST_F(Entries, AGraphThatCouldNotBeBuiltIsNotThere) {
  v1::RecordEntry outcome;
  outcome.mutable_outcome()->set_request(1);
  outcome.mutable_outcome()->set_reason("RACING_SIBLINGS");
  ASSERT_TRUE(checker_.accept(outcome).ok());
  v1::RecordEntry launch;
  launch.mutable_request()->set_number(2);
  launch.mutable_request()->set_graph(1);
  launch.mutable_request()->mutable_launch();
  refused(launch, "no graph 1");
}

}  // namespace
}  // namespace eagle::record
