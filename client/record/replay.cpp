#include "client/record/replay.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "client/record/checker.h"
#include "client/record/contents.h"
#include "client/record/walk.h"
#include "eagle/v1/record.pb.h"
#include "eagle/v1/service.pb.h"
#include "engine/base/clock.h"
#include "engine/graph/address.h"
#include "engine/graph/wire.h"
#include "engine/plane/packed.h"
#include "engine/step/result_message.h"

namespace eagle::record {
namespace {

using Clock = std::chrono::steady_clock;

// Where the entries are that belong to a request.
struct Index {
  struct Rest {
    std::vector<std::uint64_t> host_calls;
    std::uint64_t outcome = 0;  // 0: there is none
  };
  std::map<std::uint64_t, Rest> requests;
  v1::RecordHeader header;
};

// Reads the recording from its beginning to its end; every entry is checked before `visit` sees it.
template <typename Visit>  // Status(const v1::RecordEntry&, std::uint64_t place)
Status for_each_entry(const File& file, const Limits& limits, bool& cut_short, const Visit& visit) {
  Checker checker(limits);
  std::uint64_t place = File::first_place;
  bool ended = false;
  for (;;) {
    const std::uint64_t at = place;
    v1::RecordEntry entry;
    EAGLE_ASSIGN_OR_RETURN(const bool found, file.next(place, entry));
    if (!found) break;
    EAGLE_RETURN_IF_ERROR(checker.accept(entry));
    EAGLE_RETURN_IF_ERROR(visit(entry, at));
    ended = entry.has_end();
  }
  if (place == File::first_place) return bad_recording("it has no entry");
  cut_short = !ended || file.cut_short(place);
  return {};
}

StatusOr<Index> index_of(const File& file, const Limits& limits) {
  Index index;
  bool cut_short = false;
  EAGLE_RETURN_IF_ERROR(
      for_each_entry(file, limits, cut_short, [&](const v1::RecordEntry& entry, std::uint64_t at) {
        if (entry.has_header()) index.header = entry.header();
        if (entry.has_request()) index.requests[entry.request().number()];
        if (entry.has_host_call()) index.requests[entry.host_call().request()].host_calls.push_back(at);
        if (entry.has_outcome()) index.requests[entry.outcome().request()].outcome = at;
        return Status();
      }));
  return index;
}

std::string_view wire_name(const Status& status) { return info(status.reason()).wire_name; }

class Replayer {
public:
  Replayer(Host& host, const File& file, const ReplayOptions& options, Index index)
      : host_(host), file_(file), options_(options), index_(std::move(index)) {}

  Status run(const std::function<void(const Replayed&)>& each) {
    bool cut_short = false;
    return for_each_entry(file_, options_.limits, cut_short,
                          [&](const v1::RecordEntry& entry, std::uint64_t) { return visit(entry, each); });
  }

private:
  // Memory that requests name by a number.
  struct Plane {
    std::uint64_t bytes = 0;
    std::shared_ptr<Buffer> buffer;            // of the session, or
    std::shared_ptr<std::byte> private_bytes;  // of this process
    PlaneAddress where;                        // of `buffer`
  };
  struct Graph {
    std::unique_ptr<HostGraph> graph;  // null: it could not be built
    std::string name;
    std::vector<std::uint64_t> planes;
    std::map<std::uint32_t, std::vector<plane::View>> writes;  // in the planes of the recording
  };

  Status visit(const v1::RecordEntry& entry, const std::function<void(const Replayed&)>& each) {
    if (entry.has_plane()) return make(entry.plane());
    if (entry.has_fresh()) return renew(entry.fresh());
    if (entry.has_bytes()) {
      const v1::RecordBytes& bytes = entry.bytes();
      return store(bytes.plane(), bytes.offset(), std::as_bytes(std::span(bytes.data())));
    }
    if (entry.has_release()) graphs_.erase(entry.release().graph());
    if (!entry.has_request()) return {};
    EAGLE_ASSIGN_OR_RETURN(const Replayed done, answer(entry.request()));
    each(done);
    return {};
  }

  // ---- planes

  Status make(const v1::RecordPlane& message) {
    Plane plane;
    plane.bytes = message.bytes();
    // What was private in process may be computed on; a daemon computes on planes only.
    if (message.private_memory() && !(index_.header.in_process() && host_.remote())) {
      void* memory = nullptr;
      const std::size_t bytes = static_cast<std::size_t>(std::max<std::uint64_t>(plane.bytes, 1));
      if (::posix_memalign(&memory, 64, bytes) != 0)
        return {Reason::out_of_memory, "replay: the system has no " + std::to_string(plane.bytes) + " bytes"};
      std::memset(memory, 0, bytes);
      plane.private_bytes = {static_cast<std::byte*>(memory), std::free};
    } else {
      auto buffer = allocate(std::max<std::uint64_t>(plane.bytes, 1),
                             "replay " + std::to_string(message.plane()), message.device());
      if (!buffer.ok()) return buffer.status().within("replay");
      plane.buffer = *std::move(buffer);
      const auto where = host_.find(plane.buffer->data(), 1);
      if (!where) return {Reason::internal, "replay: an array that its session does not know"};
      plane.where = *where;
    }
    planes_.push_back(std::move(plane));
    return {};
  }

  // A GPU that is full is no other place than the one that was meant.
  StatusOr<std::shared_ptr<Buffer>> allocate(std::uint64_t bytes, const std::string& label,
                                             const std::string& device) {
    if (!device.empty() && !options_.on_host && !missing_.contains(device)) {
      auto there = host_.allocate_on(device, bytes, label, eagle::Contents::zeros);
      const Reason reason = there.status().reason();
      if (reason != Reason::bad_value && reason != Reason::system) return there;
      missing_.insert(device);
      if (options_.elsewhere) options_.elsewhere(device, there.status());
    }
    return host_.allocate(bytes, label, eagle::Contents::zeros);
  }

  Plane& plane_of(std::uint64_t number) { return planes_[number - 1]; }  // the checker has looked

  // Some bytes of a plane, for whoever moves values.
  static ArrayView array_of(const Plane& plane, std::uint64_t offset, std::uint64_t bytes) {
    return {plane.buffer->data() + offset,
            DType::boolean,
            1,
            {static_cast<std::int64_t>(bytes)},
            {1},
            false,
            plane.buffer};
  }

  Status store(std::uint64_t number, std::uint64_t offset, std::span<const std::byte> bytes) {
    Plane& plane = plane_of(number);
    if (bytes.empty()) return {};
    if (plane.private_bytes) {
      std::memcpy(plane.private_bytes.get() + offset, bytes.data(), bytes.size());
      return {};
    }
    return host_.send_packed(array_of(plane, offset, bytes.size()), bytes, {});
  }

  Status renew(const v1::RecordFresh& fresh) {
    Plane& plane = plane_of(fresh.plane());
    if (fresh.bytes() == 0) return {};
    if (plane.private_bytes) {
      std::memset(plane.private_bytes.get() + fresh.offset(), 0, fresh.bytes());
      return {};
    }
    constexpr std::byte zero{};
    EAGLE_RETURN_IF_ERROR(host_.fill(array_of(plane, fresh.offset(), fresh.bytes()), {&zero, 1}));
    v1::View view;
    view.set_offset(static_cast<std::int64_t>(fresh.offset()));
    view.set_dtype(v1::DTYPE_BOOL);
    view.set_item_bytes(1);
    view.add_shape(static_cast<std::int64_t>(fresh.bytes()));
    view.add_strides(1);
    return accept(plane, std::move(view));
  }

  Status accept(const Plane& plane, v1::View view) {
    if (!plane.buffer) return {};
    v1::AcceptPlanesRequest request;
    auto& part = *request.add_parts();
    part.mutable_plane()->set_id(plane.where.plane.id);
    part.mutable_plane()->set_generation(plane.where.plane.generation);
    EAGLE_RETURN_IF_ERROR(shift(view, plane.where.offset));
    *part.mutable_view() = std::move(view);
    return host_.accept(request);
  }

  static Status shift(v1::View& view, std::uint64_t by) {
    std::int64_t offset = view.offset();
    if (__builtin_add_overflow(offset, by, &offset))
      return bad_recording("a view at a place that no plane has");
    view.set_offset(offset);
    return {};
  }

  StatusOr<Digest> digest_now(const Plane& plane) {
    std::vector<Digest> digests;
    std::vector<std::byte> piece;
    for (std::uint64_t at = 0; at < plane.bytes; at += piece_bytes) {
      piece.resize(static_cast<std::size_t>(std::min(piece_bytes, plane.bytes - at)));
      if (plane.private_bytes) {
        std::memcpy(piece.data(), plane.private_bytes.get() + at, piece.size());
      } else {
        EAGLE_RETURN_IF_ERROR(host_.fetch_packed(array_of(plane, at, piece.size()), piece, {}));
      }
      digests.push_back(digest_of(std::span<const std::byte>(piece)));
    }
    return digest_of(digests);
  }

  // ---- descriptions

  // Over the planes of here instead of those of then. Several of then may be parts of one plane here, which
  // is declared once.
  template <typename Description>
  StatusOr<std::vector<run::PlaneMemory>> move_here(const v1::RecordRequest& request,
                                                    Description& description) {
    struct Place {
      std::uint32_t plane = 0;  // among the new declarations
      std::uint64_t shift = 0;
    };
    std::vector<Place> places;
    std::vector<run::PlaneMemory> memory;
    std::map<std::uint64_t, int> declared;  // by the id of a plane here
    google::protobuf::RepeatedPtrField<v1::PlaneDeclaration> declarations;
    for (int i = 0; i < request.planes_size(); ++i) {
      v1::PlaneDeclaration declaration = description.planes(i);
      run::PlaneMemory where;
      Place place{static_cast<std::uint32_t>(declarations.size()), 0};
      if (request.planes(i) != 0) {
        const Plane& plane = plane_of(request.planes(i));
        if (plane.private_bytes) {
          declaration.mutable_private_memory();
          where = {plane.private_bytes.get(), plane.bytes};
        } else {
          declaration.mutable_plane()->set_id(plane.where.plane.id);
          declaration.mutable_plane()->set_generation(plane.where.plane.generation);
          place.shift = plane.where.offset;
          // A declaration of more bytes than the plane had is one here, too.
          std::uint64_t bytes = declaration.bytes();
          if (__builtin_add_overflow(bytes, place.shift, &bytes))
            return bad_recording("a plane of too many bytes");
          declaration.set_bytes(bytes);
          const auto [known, first] = declared.emplace(plane.where.plane.id, declarations.size());
          if (!first) {
            place.plane = static_cast<std::uint32_t>(known->second);
            v1::PlaneDeclaration& whole = declarations[known->second];
            whole.set_bytes(std::max(whole.bytes(), bytes));
          }
        }
      }
      places.push_back(place);
      if (place.plane < static_cast<std::uint32_t>(declarations.size())) continue;
      *declarations.Add() = std::move(declaration);
      memory.push_back(where);
    }
    Status moved;
    for_each_view(description, [&](v1::View& view) {
      if (!moved.ok() || view.plane() >= places.size()) return;
      const Place& place = places[view.plane()];
      view.set_plane(place.plane);
      moved = shift(view, place.shift);
    });
    if (!moved.ok()) return moved;
    description.mutable_planes()->Swap(&declarations);
    call_with_copies(description);  // what they left is put there by this process
    return memory;
  }

  // ---- host calls

  // Gives a request the answers that callables gave then, in their order.
  class Callables {
  public:
    Callables(Replayer& replayer, const std::vector<std::uint64_t>& places, const Graph& graph)
        : replayer_(replayer), places_(places), graph_(graph) {}

    step::HostAnswer operator()(std::uint32_t call) {
      if (next_ >= places_.size())
        return {{Reason::host_call_failed, "replay: the recording has no answer of this callable"}, false};
      v1::RecordEntry entry;
      std::uint64_t place = places_[next_++];
      const auto read = replayer_.file_.next(place, entry);
      if (!read.ok()) return {read.status(), false};
      const v1::RecordHostCall& then = entry.host_call();
      if (then.call() != call)
        return {{Reason::host_call_failed, "replay: another callable is asked for than in the recording"},
                false};
      const Status left = replayer_.leave(then, graph_);
      if (!left.ok()) return {left, false};
      if (then.reason().empty()) return {Status(), then.stop()};
      return {Status(reason_named(then.reason()), then.message()), then.stop()};
    }

  private:
    Replayer& replayer_;
    const std::vector<std::uint64_t>& places_;
    const Graph& graph_;
    std::size_t next_ = 0;
  };

  // Puts there what a callable left.
  Status leave(const v1::RecordHostCall& call, const Graph& graph) {
    const auto writes = graph.writes.find(call.call());
    if (writes == graph.writes.end()) return {};
    for (int i = 0; i < call.written_size() && i < static_cast<int>(writes->second.size()); ++i) {
      const std::string& packed = call.written(i);
      const plane::View& view = writes->second[static_cast<std::size_t>(i)];
      if (packed.empty() || view.plane >= graph.planes.size() || graph.planes[view.plane] == 0) continue;
      Plane& plane = plane_of(graph.planes[view.plane]);
      EAGLE_RETURN_IF_ERROR(plane::check(view, plane.bytes));
      EAGLE_ASSIGN_OR_RETURN(const plane::Packed form, plane::Packed::of(view));
      if (form.bytes() != packed.size())
        return bad_recording("what a callable left has another size than its view");
      const auto bytes = std::as_bytes(std::span(packed));
      if (plane.private_bytes) {
        form.write(plane.private_bytes.get(), 0, bytes);
      } else if (!host_.copies()) {
        form.write(plane.buffer->data(), 0, bytes);
      } else {
        EAGLE_RETURN_IF_ERROR(
            host_.send_packed({plane.buffer->data() + view.offset, view.dtype, view.item_bytes, view.shape,
                               view.strides, false, plane.buffer},
                              bytes, {}));
      }
    }
    return {};
  }

  // ---- requests

  StatusOr<Replayed> answer(const v1::RecordRequest& request) {
    Replayed done;
    done.number = request.number();
    const Index::Rest& rest = index_.requests[request.number()];
    v1::RecordEntry then;
    done.finished = rest.outcome != 0;
    if (done.finished) {
      std::uint64_t place = rest.outcome;
      EAGLE_RETURN_IF_ERROR(file_.next(place, then).status());
      // Read out of turn, and a second time.
      if (!then.has_outcome() || then.outcome().request() != request.number())
        return bad_recording("it changes while it is read");
      EAGLE_RETURN_IF_ERROR(check_outcome(then.outcome(), planes_.size()));
    }
    const v1::RecordOutcome& outcome = then.outcome();
    done.recorded_reason = outcome.reason();
    done.recorded_message = outcome.message();
    done.recorded_s = outcome.wall_s();
    done.comparable =
        outcome.reason() != info(Reason::cancelled).wire_name && outcome.result().status() != v1::CANCELLED;

    const Clock::time_point begun = Clock::now();
    EAGLE_ASSIGN_OR_RETURN(const Answer got, make(request, rest, outcome, done));
    done.wall_s = seconds_since(begun);
    done.reason = wire_name(got.status);
    done.message = got.status.message();
    if (!options_.verify || !got.status.ok()) return done;
    for (const v1::RecordDigest& digest : outcome.digests()) {
      EAGLE_ASSIGN_OR_RETURN(const Digest now, digest_now(plane_of(digest.plane())));
      if (done.bits == Replayed::Bits::not_compared) done.bits = Replayed::Bits::equal;
      if (std::memcmp(now.data(), digest.sha256().data(), now.size()) == 0) continue;
      done.bits = Replayed::Bits::different;
      done.different_planes.push_back(digest.plane());
    }
    return done;
  }

  // What a request got; an error of the recording itself is beside it.
  struct Answer {
    Status status;
  };
  StatusOr<Answer> make(const v1::RecordRequest& request, const Index::Rest& rest,
                        const v1::RecordOutcome& outcome, Replayed& done) {
    switch (request.kind_case()) {
      case v1::RecordRequest::kBuild:
        done.kind = "build";
        return build(request, done);
      case v1::RecordRequest::kRun:
        done.kind = request.run().submitted() ? "submit" : "run";
        return simulate(request, rest, outcome, done);
      case v1::RecordRequest::kAccept: {
        done.kind = "accept";
        Status status;
        for (const auto& part : request.accept().parts()) {
          if (status.ok()) status = accept(plane_of(part.plane()), part.view());
        }
        return Answer{status};
      }
      default:
        break;
    }
    const auto found = graphs_.find(request.graph());
    done.kind = request.has_launch() ? "launch" : request.has_update() ? "update" : "rebind";
    if (found == graphs_.end() || found->second.graph == nullptr) {
      done.graph = std::to_string(request.graph());
      return Answer{{Reason::graph_state, "replay: its graph could not be built here"}};
    }
    Graph& graph = found->second;
    done.graph = graph.name;
    if (request.has_launch()) return launch(request.launch(), rest, outcome, graph, done);
    if (request.has_rebind()) {
      v1::GraphDescription description = request.rebind();
      auto writes = host_writes(description);
      EAGLE_ASSIGN_OR_RETURN(const auto memory, move_here(request, description));
      Status status = graph.graph->rebind(description, memory);
      if (status.ok()) {
        graph.planes.assign(request.planes().begin(), request.planes().end());
        graph.writes = std::move(writes);
      }
      return Answer{status};
    }
    std::vector<graph::ParamUpdate> updates;
    for (const v1::ParamUpdate& message : request.update().params()) {
      auto update = graph::read_update(message);
      if (!update.ok()) return Answer{update.status()};
      updates.push_back(*std::move(update));
    }
    return Answer{graph.graph->update(updates)};
  }

  StatusOr<Answer> build(const v1::RecordRequest& request, Replayed& done) {
    Graph made;
    made.name = request.build().name().empty() ? std::to_string(request.graph()) : request.build().name();
    made.planes.assign(request.planes().begin(), request.planes().end());
    v1::GraphDescription description = request.build();
    made.writes = host_writes(description);
    EAGLE_ASSIGN_OR_RETURN(const auto memory, move_here(request, description));
    done.graph = made.name;
    auto built = host_.build(description, memory);
    if (built.ok()) made.graph = *std::move(built);
    graphs_[request.graph()] = std::move(made);
    return Answer{built.status()};
  }

  StatusOr<Answer> launch(const v1::RecordLaunch& wanted, const Index::Rest& rest,
                          const v1::RecordOutcome& outcome, Graph& graph, Replayed& done) {
    Callables callables(*this, rest.host_calls, graph);
    const auto call = [&](std::uint32_t number) { return callables(number).status; };
    LaunchOptions options;
    options.cancel = std::make_shared<std::atomic<bool>>(false);
    if (wanted.timeout_ms() > 0) options.timeout = std::chrono::milliseconds(wanted.timeout_ms());
    const auto launched = [&]() -> StatusOr<LaunchReport> {
      if (!wanted.enqueued() || !graph.graph->enqueues())
        return graph.graph->launch(wanted.count(), options, call);
      EAGLE_RETURN_IF_ERROR(graph.graph->enqueue(wanted.count()));
      return graph.graph->synchronize(options, call);
    };
    const auto report = launched();
    if (!report.ok()) return Answer{report.status()};
    if (outcome.reason().empty() && done.finished) {
      if (report->launches != outcome.launches())
        done.counted =
            std::to_string(report->launches) + " launches instead of " + std::to_string(outcome.launches());
      const std::vector<std::int64_t> then(outcome.iterations().begin(), outcome.iterations().end());
      if (report->iterations != then) done.counted = "loops took another number of iterations";
    }
    return Answer{};
  }

  StatusOr<Answer> simulate(const v1::RecordRequest& request, const Index::Rest& rest,
                            const v1::RecordOutcome& outcome, Replayed& done) {
    v1::RunDescription description = request.run().run();
    Graph callers;  // for its callables only
    callers.planes.assign(request.planes().begin(), request.planes().end());
    callers.writes = host_writes(description);
    EAGLE_ASSIGN_OR_RETURN(const auto memory, move_here(request, description));
    Callables callables(*this, rest.host_calls, callers);
    SimulateOptions options;
    options.max_steps = description.max_steps();
    options.cancel = std::make_shared<std::atomic<bool>>(false);
    if (request.run().timeout_ms() > 0)
      options.timeout = std::chrono::milliseconds(request.run().timeout_ms());
    const auto result =
        host_.simulate(description, memory, options, [&](std::uint32_t call) { return callables(call); });
    if (!result.ok()) return Answer{result.status()};
    if (!outcome.has_result() || !outcome.reason().empty()) return Answer{};
    v1::RunResult now;
    step::describe(*result, now);
    const v1::RunResult& then = outcome.result();
    if (now.status() != then.status()) {
      done.counted =
          "ended " + v1::RunStatus_Name(now.status()) + " instead of " + v1::RunStatus_Name(then.status());
    } else if (then.status() != v1::DEADLINE && (now.report().steps() != then.report().steps() ||
                                                 now.report().finished() != then.report().finished())) {
      done.counted = std::to_string(now.report().steps()) + " steps and " +
                     std::to_string(now.report().finished()) + " finished samples instead of " +
                     std::to_string(then.report().steps()) + " and " +
                     std::to_string(then.report().finished());
    }
    return Answer{};
  }

  Host& host_;
  const File& file_;
  const ReplayOptions& options_;
  Index index_;
  std::vector<Plane> planes_;
  std::set<std::string> missing_;  // GPUs that the host has not
  std::map<std::uint64_t, Graph> graphs_;
};

}  // namespace

StatusOr<Summary> summary_of(const File& file, const Limits& limits) {
  Summary found;
  EAGLE_RETURN_IF_ERROR(
      for_each_entry(file, limits, found.cut_short, [&](const v1::RecordEntry& entry, std::uint64_t) {
        found.seconds = std::max(found.seconds, entry.at_s());
        if (entry.has_header()) {
          const v1::RecordHeader& header = entry.header();
          found.client = header.client();
          found.client_version = header.client_version();
          found.host_version = header.host_version();
          found.endpoint = header.endpoint();
          found.transport = header.transport();
          found.cpu = header.cpu();
          found.threads = header.threads();
          found.with_contents = header.contents();
        }
        if (entry.has_plane()) {
          ++found.planes;
          found.plane_bytes += entry.plane().bytes();
          if (!entry.plane().device().empty()) {
            ++found.gpu_planes;
            found.gpu_bytes += entry.plane().bytes();
          }
        }
        if (entry.has_request()) {
          ++found.requests;
          found.launches += entry.request().has_launch() ? 1 : 0;
        }
        if (entry.has_outcome()) found.failed += entry.outcome().reason().empty() ? 0 : 1;
        if (entry.has_end()) found.end = entry.end().why();
        return Status();
      }));
  return found;
}

Status replay(Host& host, const File& file, const ReplayOptions& options,
              const std::function<void(const Replayed&)>& each) {
  EAGLE_ASSIGN_OR_RETURN(Index index, index_of(file, options.limits));
  return Replayer(host, file, options, std::move(index)).run(each);
}

}  // namespace eagle::record
