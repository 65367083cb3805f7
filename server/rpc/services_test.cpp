#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "server/rpc/services.h"
#include "server/rpc/testing.h"

namespace eagle::server {
namespace {

using server::testing::add_host_node;
using server::testing::add_increment;
using server::testing::Conversation;
using server::testing::GraphScene;
using server::testing::Mapping;
using server::testing::Remote;
using server::testing::Rpc;
using server::testing::Served;
using server::testing::SideClient;
using ::testing::HasSubstr;

TEST_F(Rpc, CallsWithoutTheSecretOfASessionAreRefused) {
  const std::string right = secret_;
  for (const std::string& wrong : {std::string(64, '0'), right.substr(1), std::string("x"), std::string()}) {
    secret_ = wrong;
    v1::InfoReply reply;
    EXPECT_EQ(call(admin_, &v1::Admin::Stub::Info, v1::InfoRequest(), reply).reason(),
              Reason::unauthenticated);
    v1::CreatePlanesReply planes;
    EXPECT_EQ(call(planes_, &v1::Planes::Stub::Create, v1::CreatePlanesRequest(), planes).reason(),
              Reason::unauthenticated);
    v1::LaunchReport report;
    EXPECT_EQ(launch(1, 1, report).reason(), Reason::unauthenticated);
    Conversation conversation(*graphs_, wrong);
    conversation.launch(1, 1);
    EXPECT_EQ(conversation.finish().reason(), Reason::unauthenticated);
    grpc::ClientContext context;
    prepare(context);
    const auto events = runs_->Simulate(&context, v1::SimulateRequest());
    v1::SimulateEvent event;
    EXPECT_FALSE(events->Read(&event));
    EXPECT_EQ(rpc::status_of(events->Finish(), context).reason(), Reason::unauthenticated);
  }
}

TEST_F(Rpc, TheSecretIsGoodForAsLongAsTheSideConnection) {
  side_->close();
  v1::InfoReply reply;
  Status status;
  while (status.ok()) status = call(admin_, &v1::Admin::Stub::Info, v1::InfoRequest(), reply);
  EXPECT_EQ(status.reason(), Reason::unauthenticated);
}

TEST_F(Rpc, PlanesAreMadeListedAndReleased) {
  const v1::PlaneInfo plane = create(100);
  EXPECT_EQ(plane.bytes(), 100u);
  EXPECT_EQ(plane.transport(), v1::TRANSPORT_MEMFD);
  EXPECT_GE(plane.token().size(), 16u);
  v1::ListPlanesReply list;
  ASSERT_TRUE(call(planes_, &v1::Planes::Stub::List, v1::ListPlanesRequest(), list).ok());
  ASSERT_EQ(list.planes_size(), 1);
  EXPECT_EQ(list.planes(0).ref().id(), plane.ref().id());
  EXPECT_EQ(list.planes(0).token(), "");
  EXPECT_EQ(info().planes(), 1u);
  EXPECT_TRUE(release(plane).ok());
  EXPECT_EQ(release(plane).reason(), Reason::unknown_plane);
  EXPECT_EQ(info().plane_bytes(), 0u);
}

TEST_F(Rpc, TheBudgetIsRefusedWithItsNumbers) {
  Daemon::Options options;
  options.plane_budget_bytes = 1 << 20;
  serve(std::move(options));
  v1::CreatePlanesRequest request;
  request.add_planes()->set_bytes(2 << 20);
  v1::CreatePlanesReply reply;
  const Status status = call(planes_, &v1::Planes::Stub::Create, request, reply);
  EXPECT_EQ(status.reason(), Reason::plane_budget);
  EXPECT_EQ(status.code(), Code::resource_exhausted);
  EXPECT_THAT(status.message(), HasSubstr("1048576"));
}

// Keeps the one thread of a pool while it lives.
class Busy {
public:
  explicit Busy(WorkPool& pool) {
    EXPECT_TRUE(pool.submit([this] {
                      busy_.put(1);
                      go_.take();
                      over_.put(1);
                    })
                    .ok());
    busy_.take();
  }
  ~Busy() {
    go_.put(1);
    over_.take();
  }

private:
  server::testing::Mailbox<int> busy_;
  server::testing::Mailbox<int> go_;
  server::testing::Mailbox<int> over_;
};

TEST_F(Rpc, SmallPlanesComeAndGoWhileALargeOneIsBeingMade) {
  const std::uint64_t small = served_->daemon().limits().small_memory_bytes;
  const Busy large(served_->daemon().memory_pool(small + 1));
  EXPECT_TRUE(release(create(100)).ok());
}

TEST_F(Rpc, LargePlanesAreNotForTheThreadOfTheSmallOnes) {
  Daemon::Options options;
  options.limits.small_memory_bytes = 4096;
  serve(std::move(options));
  const Busy small(served_->daemon().memory_pool(4096));
  const v1::PlaneInfo plane = create(4097);
  // A graph that is given up frees the planes that were released before.
  GraphScene scene(*session_);
  const auto x = scene.plane<double>(1024, 0.0);
  add_increment(scene, x);
  v1::ReleaseGraphRequest request;
  request.set_graph(build(scene).graph());
  const graph::PlaneId id = x.plane->id();
  ASSERT_TRUE(session_->planes().release({&id, 1}).ok());
  v1::ReleaseGraphReply reply;
  EXPECT_TRUE(call(graphs_, &v1::Graphs::Stub::Release, request, reply).ok());
  EXPECT_TRUE(release(plane).ok());
}

TEST_F(Rpc, SizesThatWrapAroundAreOverTheBudget) {
  v1::CreatePlanesRequest request;
  request.add_planes()->set_bytes(UINT64_MAX);
  request.add_planes()->set_bytes(2);
  v1::CreatePlanesReply reply;
  EXPECT_EQ(call(planes_, &v1::Planes::Stub::Create, request, reply).reason(), Reason::plane_budget);
}

TEST_F(Rpc, AGraphComputesOnTheMemoryThatTheClientMapped) {
  GraphScene scene(*session_);
  const v1::PlaneInfo plane = create(4 * sizeof(double));
  ASSERT_TRUE(side_->fetch({plane.token()}).has_fetch());
  const auto descriptors = side_->take_descriptors();
  const Mapping mine(descriptors.at(0), plane.bytes());
  std::fill(mine.doubles().begin(), mine.doubles().end(), 2.0);

  auto x = scene.plane<double>(4, 0.0);
  *scene.message.mutable_planes(0)->mutable_plane() = plane.ref();
  add_increment(scene, x);
  const v1::BuildReply built = build(scene);
  EXPECT_EQ(built.node_labels_size(), 1);
  EXPECT_EQ(built.node_labels(0), "increment");
  EXPECT_EQ(built.schedule(0), "work_share");

  v1::LaunchReport report;
  ASSERT_TRUE(launch(built.graph(), 5, report).ok());
  EXPECT_EQ(report.launches(), 5);
  EXPECT_EQ(report.host().pid(), ::getpid());
  EXPECT_EQ(mine.doubles()[3], 7.0);
}

TEST_F(Rpc, AnEnqueuedLaunchIsCollectedByItsId) {
  GraphScene scene(*session_);
  const auto x = scene.plane<double>(4, 0.0);
  add_increment(scene, x);
  v1::LaunchRequest request;
  request.set_graph(build(scene).graph());
  request.set_count(3);
  v1::EnqueueReply queued;
  EXPECT_EQ(call(graphs_, &v1::Graphs::Stub::Enqueue, request, queued).reason(), Reason::bad_value)
      << "no id";
  request.set_launch_id(5);
  ASSERT_TRUE(call(graphs_, &v1::Graphs::Stub::Enqueue, request, queued).ok());
  v1::LaunchReport report;
  ASSERT_TRUE(call(graphs_, &v1::Graphs::Stub::Launch, request, report).ok());
  EXPECT_EQ(report.launches(), 3);
  ASSERT_TRUE(call(graphs_, &v1::Graphs::Stub::Launch, request, report).ok()) << "it does not run again";
  request.set_graph(99);
  request.set_launch_id(6);
  EXPECT_EQ(call(graphs_, &v1::Graphs::Stub::Enqueue, request, queued).reason(), Reason::unknown_graph);
}

TEST_F(Rpc, AnUpdateOfAnUnknownGraphOrWithoutANumberIsRefused) {
  GraphScene scene(*session_);
  const auto x = scene.plane<double>(4, 0.0);
  add_increment(scene, x);
  v1::UpdateRequest request;
  v1::UpdateReply reply;
  request.set_graph(99);
  EXPECT_EQ(call(graphs_, &v1::Graphs::Stub::Update, request, reply).reason(), Reason::unknown_graph);
  request.set_graph(build(scene).graph());
  EXPECT_TRUE(call(graphs_, &v1::Graphs::Stub::Update, request, reply).ok()) << "nothing to do";
  request.add_params()->mutable_argument()->set_name("nobody");
  EXPECT_EQ(call(graphs_, &v1::Graphs::Stub::Update, request, reply).reason(), Reason::malformed_graph);
  request.mutable_params(0)->mutable_value()->set_real(1.0);
  EXPECT_EQ(call(graphs_, &v1::Graphs::Stub::Update, request, reply).reason(), Reason::unknown_name);
}

TEST_F(Rpc, ARebindKeepsTheGraphsIdAndCountsItsLaunches) {
  GraphScene scene(*session_);
  const auto x = scene.plane<double>(4, 0.0);
  add_increment(scene, x);
  v1::RebindRequest request;
  request.set_graph(build(scene).graph());
  v1::LaunchReport report;
  ASSERT_TRUE(launch(request.graph(), 2, report).ok());
  GraphScene other(*session_);
  const auto y = other.plane<double>(4, 0.0);
  add_increment(other, y);
  *request.mutable_description() = other.message;
  v1::RebindReply reply;
  ASSERT_TRUE(call(graphs_, &v1::Graphs::Stub::Rebind, request, reply).ok());
  ASSERT_TRUE(launch(request.graph(), 3, report).ok());
  v1::ListGraphsReply list;
  ASSERT_TRUE(call(graphs_, &v1::Graphs::Stub::List, v1::ListGraphsRequest(), list).ok());
  ASSERT_EQ(list.graphs_size(), 1);
  EXPECT_EQ(list.graphs(0).launches(), 5U);
  request.clear_description();
  EXPECT_EQ(call(graphs_, &v1::Graphs::Stub::Rebind, request, reply).reason(), Reason::graph_state);
  EXPECT_TRUE(launch(request.graph(), 1, report).ok()) << "a refused rebind changes nothing";
}

TEST_F(Rpc, HostNodesRunInTheConversationOfTheLaunch) {
  Conversation conversation(*graphs_, secret_);
  conversation.launch(build_with_call(), 2);
  for (int i = 0; i < 2; ++i) {
    const v1::LaunchServerMessage asked = conversation.read();
    ASSERT_TRUE(asked.has_call());
    EXPECT_EQ(asked.call().call(), 7u);
    conversation.reply(asked.call().sequence());
  }
  EXPECT_EQ(conversation.read().report().launches(), 2);
  EXPECT_TRUE(conversation.finish().ok());
}

TEST_F(Rpc, ACallableThatRaisedEndsTheLaunch) {
  Conversation conversation(*graphs_, secret_);
  conversation.launch(build_with_call(), 2);
  conversation.reply(conversation.read().call().sequence(), false, "ValueError: no");
  const Status status = conversation.finish();
  EXPECT_EQ(status.reason(), Reason::host_call_failed);
  EXPECT_THAT(status.message(), ::testing::StartsWith("ValueError: no; left half written"));
}

TEST_F(Rpc, AGraphWithHostNodesIsNotForTheUnaryLaunch) {
  v1::LaunchReport report;
  const Status status = launch(build_with_call(), 1, report);
  EXPECT_EQ(status.reason(), Reason::graph_state);
  EXPECT_THAT(status.message(), HasSubstr("LaunchWithCalls"));
}

TEST_F(Rpc, ConversationsThatBreakTheRulesEndWithTheRule) {
  const std::uint64_t graph = build_with_call();
  {
    Conversation conversation(*graphs_, secret_);
    conversation.reply(1);
    EXPECT_EQ(conversation.finish().reason(), Reason::bad_message);
  }
  {
    Conversation conversation(*graphs_, secret_);
    conversation.launch(graph, 1);
    conversation.reply(conversation.read().call().sequence() + 5);
    EXPECT_EQ(conversation.finish().reason(), Reason::bad_message);
  }
  {
    Conversation conversation(*graphs_, secret_);
    accept_all();
    conversation.launch(graph, 1);
    ASSERT_TRUE(conversation.read().has_call());
    conversation.launch(graph, 1);
    EXPECT_EQ(conversation.finish().reason(), Reason::bad_message);
  }
  {
    Conversation conversation(*graphs_, secret_);
    conversation.say_nothing_more();
    EXPECT_EQ(conversation.finish().reason(), Reason::bad_message) << "there is no first message";
  }
  {
    Conversation conversation(*graphs_, secret_);
    accept_all();
    conversation.launch(graph, 1);
    ASSERT_TRUE(conversation.read().has_call());
    conversation.say_nothing_more();
    EXPECT_EQ(conversation.finish().reason(), Reason::cancelled);
  }
  // And none of them left the graph busy.
  accept_all();
  Conversation conversation(*graphs_, secret_);
  conversation.launch(graph, 1);
  conversation.reply(conversation.read().call().sequence());
  EXPECT_TRUE(conversation.read().has_report());
  EXPECT_TRUE(conversation.finish().ok());
}

TEST_F(Rpc, StreamsWhoseClientSaysNothingEnd) {
  Daemon::Options options;
  options.limits.first_word_timeout = std::chrono::milliseconds(1);
  serve(std::move(options));
  EXPECT_EQ(Conversation(*graphs_, secret_).finish().reason(), Reason::deadline);
  {
    grpc::ClientContext context;
    prepare(context);
    const auto run = runs_->SimulateWithCalls(&context);
    v1::SimulateEvent event;
    EXPECT_FALSE(run->Read(&event));
    EXPECT_EQ(rpc::status_of(run->Finish(), context).reason(), Reason::deadline);
  }
  // As a client over TCP, who has shown nothing yet.
  const Remote remote(served_->daemon());
  const auto sessions = v1::Sessions::NewStub(remote.channel());
  grpc::ClientContext context;
  const auto stream = sessions->Attach(&context);
  v1::AttachServerMessage message;
  EXPECT_FALSE(stream->Read(&message));
  EXPECT_EQ(rpc::status_of(stream->Finish(), context).reason(), Reason::deadline);
}

TEST_F(Rpc, WhoClosesItsSideAfterTheLaunchStillGetsTheReport) {
  GraphScene scene(*session_);
  add_increment(scene, scene.plane<double>(4, 0.0));
  Conversation conversation(*graphs_, secret_);
  conversation.launch(build(scene).graph(), 3);
  conversation.say_nothing_more();
  EXPECT_EQ(conversation.read().report().launches(), 3);
  EXPECT_TRUE(conversation.finish().ok());
}

// With the usual first_word_timeout: what ends them is that they have no session.
TEST_F(Rpc, StreamsWithoutASessionAreRefusedBeforeTheirFirstMessage) {
  EXPECT_EQ(Conversation(*graphs_, std::string(64, '0')).finish().reason(), Reason::unauthenticated);
  grpc::ClientContext context;
  const auto run = runs_->SimulateWithCalls(&context);
  v1::SimulateEvent event;
  EXPECT_FALSE(run->Read(&event));
  EXPECT_EQ(rpc::status_of(run->Finish(), context).reason(), Reason::unauthenticated);
}

TEST_F(Rpc, StreamsThatHaveNotOpenedASessionAreBoundedInNumber) {
  Daemon::Options options;
  options.limits.unnamed_streams = 1;
  serve(std::move(options));
  const Remote remote(served_->daemon());
  const auto sessions = v1::Sessions::NewStub(remote.channel());
  v1::AttachClientMessage open;
  open.mutable_open()->mutable_hello()->mutable_protocol()->set_min(1);
  open.mutable_open()->mutable_hello()->mutable_protocol()->set_max(1);
  v1::AttachServerMessage answer;
  // One that has opened its session counts no more.
  grpc::ClientContext named_context;
  const auto named = sessions->Attach(&named_context);
  ASSERT_TRUE(named->Write(open) && named->Read(&answer));
  // Of two more one is refused, whichever comes later.
  std::array<grpc::ClientContext, 2> contexts;
  const std::array streams = {sessions->Attach(contexts.data()), sessions->Attach(&contexts[1])};
  std::array<v1::AttachServerMessage, 2> answers;
  std::array<std::future<bool>, 2> read;
  for (std::size_t i = 0; i < 2; ++i)
    read[i] = std::async(std::launch::async, [&, i] { return streams[i]->Read(&answers[i]); });
  const auto has_ended = [&](std::size_t i) {
    return read[i].wait_for(std::chrono::milliseconds(1)) == std::future_status::ready;
  };
  std::size_t one = 0;
  while (!has_ended(one)) one = 1 - one;
  EXPECT_FALSE(read[one].get());
  const Status refused = rpc::status_of(streams[one]->Finish(), contexts[one]);
  EXPECT_EQ(refused.reason(), Reason::quota) << refused.to_string();
  EXPECT_THAT(refused.message(), HasSubstr("unnamed_streams"));
  EXPECT_TRUE(streams[1 - one]->Write(open) && read[1 - one].get());
  for (auto* context : {&named_context, &contexts[1 - one]}) context->TryCancel();
  EXPECT_FALSE(named->Finish().ok());
  EXPECT_FALSE(streams[1 - one]->Finish().ok());
}

TEST_F(Rpc, AClientThatGivesUpLeavesTheGraphFree) {
  const std::uint64_t graph = build_with_call();
  {
    Conversation abandoned(*graphs_, secret_);
    abandoned.launch(graph, 1);
    ASSERT_TRUE(abandoned.read().has_call());
    abandoned.give_up();
    EXPECT_EQ(abandoned.finish().reason(), Reason::cancelled);
  }
  Status status(Reason::busy, "");
  while (status.reason() == Reason::busy || status.reason() == Reason::plane_torn) {
    accept_all();  // until the daemon has heard of it
    Conversation next(*graphs_, secret_);
    next.launch(graph, 1);
    const v1::LaunchServerMessage asked = next.read();
    if (asked.has_call()) next.reply(asked.call().sequence());
    status = next.finish();
  }
  EXPECT_TRUE(status.ok()) << status.to_string();
}

TEST_F(Rpc, ALaunchEndsWithItsDeadline) {
  GraphScene scene(*session_);
  add_increment(scene, scene.plane<double>(4, 0.0));
  v1::LaunchRequest request;
  request.set_graph(build(scene).graph());
  request.set_count(std::int64_t{1} << 62);
  v1::LaunchReport report;
  grpc::ClientContext context;
  prepare(context);
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(50));
  EXPECT_EQ(rpc::status_of(graphs_->Launch(&context, request, &report), context).reason(), Reason::deadline);
  Status status(Reason::busy, "");
  while (status.reason() == Reason::busy) status = launch(request.graph(), 1, report);
  EXPECT_TRUE(status.ok()) << status.to_string();
}

TEST_F(Rpc, ARunTellsItsProgressAndItsResult) {
  v1::SimulateRequest request;
  *request.mutable_run() = server::testing::oscillator_run(*session_, 100, 0.1, 1000).message;
  grpc::ClientContext context;
  prepare(context);
  const auto events = runs_->Simulate(&context, request);
  v1::SimulateEvent event;
  v1::SimulateEvent last;
  while (events->Read(&event)) last = event;
  const Status status = rpc::status_of(events->Finish(), context);
  ASSERT_TRUE(status.ok()) << status.to_string();
  EXPECT_EQ(last.result().status(), v1::FINISHED);
  EXPECT_EQ(last.result().report().samples(), 100);
  EXPECT_EQ(last.result().report().finished(), 100);
  EXPECT_EQ(last.result().report().kernels_size(), 1);
}

TEST_F(Rpc, CancelEndsARunWhichThenTellsHowFarItCame) {
  v1::SimulateRequest request;
  *request.mutable_run() =
      server::testing::oscillator_run(*session_, 1000, 1e300, std::int64_t{1} << 60).message;
  request.set_launch_id(11);
  request.set_progress(true);
  grpc::ClientContext context;
  prepare(context);
  const auto events = runs_->Simulate(&context, request);
  v1::SimulateEvent event;
  ASSERT_TRUE(events->Read(&event));
  EXPECT_TRUE(event.has_progress());
  v1::CancelRequest cancel;
  cancel.set_launch_id(11);
  v1::CancelReply reply;
  EXPECT_TRUE(call(graphs_, &v1::Graphs::Stub::Cancel, cancel, reply).ok());
  while (events->Read(&event)) {
  }
  EXPECT_TRUE(events->Finish().ok());
  EXPECT_EQ(event.result().status(), v1::CANCELLED);
  EXPECT_GT(event.result().report().steps(), 0);
}

TEST_F(Rpc, AMalformedRunIsRefusedByName) {
  grpc::ClientContext context;
  prepare(context);
  const auto events = runs_->Simulate(&context, v1::SimulateRequest());
  v1::SimulateEvent event;
  EXPECT_FALSE(events->Read(&event));
  EXPECT_EQ(rpc::status_of(events->Finish(), context).reason(), Reason::malformed_graph);
}

TEST_F(Rpc, LongMessagesArriveCut) {
  v1::BuildRequest request;
  v1::PlaneDeclaration& plane = *request.mutable_graph()->add_planes();
  plane.mutable_plane()->set_id(99);
  std::string label;
  for (int i = 0; i < 100'000; ++i) label += "\xc3\xa9";
  plane.set_label(label);
  v1::BuildReply reply;
  const Status status = call(graphs_, &v1::Graphs::Stub::Build, request, reply);
  EXPECT_EQ(status.reason(), Reason::unknown_plane) << status.to_string();
  EXPECT_TRUE(status.message().ends_with("..."));
}

TEST_F(Rpc, MessagesOverTheLimitAreRefusedAndTheConnectionGoesOn) {
  Daemon::Options options;
  options.limits.message_bytes = 1 << 20;
  serve(std::move(options));
  v1::BuildRequest request;
  request.mutable_graph()->set_name(std::string(2 << 20, 'n'));
  v1::BuildReply reply;
  EXPECT_EQ(call(graphs_, &v1::Graphs::Stub::Build, request, reply).code(), Code::resource_exhausted);
  EXPECT_EQ(info().sessions(), 1u);
}

TEST_F(Rpc, InfoSaysWhatRunsHere) {
  const v1::InfoReply reply = info();
  EXPECT_EQ(reply.version(), EAGLE_VERSION);
  EXPECT_EQ(reply.protocol().min(), 1u);
  EXPECT_EQ(reply.protocol().max(), 1u);
  EXPECT_EQ(reply.host().pid(), ::getpid());
  EXPECT_EQ(reply.threads(), 2);
  EXPECT_EQ(reply.sessions(), 1u);
  EXPECT_GT(reply.plane_budget_bytes(), 0u);
  EXPECT_FALSE(reply.cpu().empty());
  ASSERT_EQ(reply.listen_size(), 1);
  EXPECT_EQ(reply.listen(0), "unix:" + served_->path());
}

TEST_F(Rpc, InfoTellsWhatATenantHoldsAndUsed) {
  GraphScene scene(*session_);
  add_increment(scene, scene.plane<double>(4, 0.0));
  const std::uint64_t graph = build(scene).graph();
  v1::LaunchReport report;
  ASSERT_TRUE(launch(graph, 100, report).ok());
  // The report is on its way before the launch is counted.
  v1::InfoReply reply = info();
  while (reply.tenants_size() == 1 && reply.tenants(0).jobs_ended() == 0) reply = info();
  ASSERT_EQ(reply.tenants_size(), 1);
  const v1::TenantInfo& tenant = reply.tenants(0);
  EXPECT_EQ(tenant.name(), "uid:" + std::to_string(::geteuid()));
  EXPECT_EQ(tenant.weight(), 1);
  EXPECT_EQ(tenant.sessions(), 1u);
  EXPECT_EQ(tenant.graphs(), 1u);
  EXPECT_EQ(tenant.planes(), 1u);
  EXPECT_GT(tenant.plane_bytes(), 4096u)
      << "the page that an array of 32 bytes has, and the graph's description";
  EXPECT_EQ(tenant.jobs_ended(), 1u);
  EXPECT_GT(tenant.device_s(), 0);
  EXPECT_GE(tenant.longest_queue_wait_s(), 0);
}

TEST_F(Rpc, AcceptIsForViewsOfOnesOwnPlanes) {
  const v1::PlaneInfo plane = create(64);
  const auto held = *session_->planes().find({plane.ref().id(), plane.ref().generation()});
  held->mark_torn("all of it");
  v1::AcceptPlanesRequest request;
  v1::AcceptPlanesReply reply;
  auto& part = *request.add_parts();
  *part.mutable_plane() = plane.ref();
  part.mutable_view()->set_dtype(v1::DTYPE_F64);
  part.mutable_view()->set_item_bytes(8);
  part.mutable_view()->add_shape(std::int64_t{1} << 62);
  part.mutable_view()->add_strides(std::int64_t{1} << 62);
  const auto accept = [&] { return call(planes_, &v1::Planes::Stub::Accept, request, reply); };
  EXPECT_FALSE(accept().ok()) << "a view that reaches outside";
  part.mutable_view()->set_shape(0, 8);
  part.mutable_view()->set_strides(0, 8);
  part.mutable_plane()->set_generation(99);
  EXPECT_EQ(accept().reason(), Reason::unknown_plane);
  EXPECT_TRUE(held->torn().any());
  *part.mutable_plane() = plane.ref();
  EXPECT_TRUE(accept().ok());
  EXPECT_FALSE(held->torn().any());
  for (int i = 0; i < 5000; ++i) *request.add_parts() = request.parts(0);
  EXPECT_EQ(accept().reason(), Reason::quota);
}

TEST_F(Rpc, ADrainingDaemonTakesNoNewWorkAndStillAnswers) {
  GraphScene scene(*session_);
  add_increment(scene, scene.plane<double>(4, 0.0));
  const std::uint64_t graph = build(scene).graph();
  served_->daemon().begin_drain();
  v1::LaunchReport report;
  const Status refused = launch(graph, 1, report);
  EXPECT_EQ(refused.reason(), Reason::shutting_down);
  EXPECT_EQ(refused.code(), Code::unavailable);
  v1::CreatePlanesRequest request;
  request.add_planes()->set_bytes(1);
  v1::CreatePlanesReply planes;
  EXPECT_EQ(call(planes_, &v1::Planes::Stub::Create, request, planes).reason(), Reason::shutting_down);
  EXPECT_EQ(info().sessions(), 1u);
}

TEST_F(Rpc, TheDaemonEndsWhileCallsAreOpen) {
  Conversation conversation(*graphs_, secret_);
  conversation.launch(build_with_call(), 1);
  ASSERT_TRUE(conversation.read().has_call());
  Conversation silent(*graphs_, secret_);
  session_.reset();  // the daemon's
  served_.reset();
  EXPECT_FALSE(conversation.finish().ok());
  EXPECT_FALSE(silent.finish().ok());
}

}  // namespace
}  // namespace eagle::server
