#include "client/record/checker.h"

#include <cmath>

#include "client/record/format.h"
#include "eagle/v1/record.pb.h"

namespace eagle::record {
namespace {

constexpr std::size_t longest_device = 128;

Status over(const char* what, std::uint64_t limit) {
  return {Reason::quota, "recording: more than " + std::to_string(limit) + " " + what};
}

bool is_time(double seconds) { return std::isfinite(seconds) && seconds >= 0; }

}  // namespace

Status bad_recording(const std::string& what) { return {Reason::bad_message, "recording: " + what}; }

Status Checker::accept(const v1::RecordEntry& entry) {
  if (ended_) return bad_recording("an entry after its end");
  if (!is_time(entry.at_s())) return bad_recording("an entry at no time");
  if (!begun_ && !entry.has_header()) return bad_recording("its first entry is no header");
  switch (entry.kind_case()) {
    case v1::RecordEntry::kHeader:
      return accept(entry.header());
    case v1::RecordEntry::kPlane: {
      const v1::RecordPlane& plane = entry.plane();
      if (plane.plane() != planes_.size() + 1) return bad_recording("plane numbers do not count up");
      if (planes_.size() >= limits_.planes) return over("planes", limits_.planes);
      if (plane.device().size() > longest_device) return bad_recording("a GPU whose name is too long");
      if (!plane.device().empty() && plane.private_memory()) return bad_recording("private memory on a GPU");
      if (plane.bytes() > limits_.plane_bytes - plane_bytes_)
        return over("bytes of planes", limits_.plane_bytes);
      plane_bytes_ += plane.bytes();
      planes_.push_back(plane.bytes());
      return {};
    }
    case v1::RecordEntry::kFresh:
      return check_range(entry.fresh().plane(), entry.fresh().offset(), entry.fresh().bytes());
    case v1::RecordEntry::kBytes:
      if (entry.bytes().data().size() > piece_bytes) return bad_recording("a piece of a plane of over 1 MiB");
      return check_range(entry.bytes().plane(), entry.bytes().offset(), entry.bytes().data().size());
    case v1::RecordEntry::kRequest:
      return accept(entry.request());
    case v1::RecordEntry::kHostCall:
      return accept(entry.host_call());
    case v1::RecordEntry::kOutcome:
      return accept(entry.outcome());
    case v1::RecordEntry::kRelease:
      if (graphs_.erase(entry.release().graph()) == 0)
        return bad_recording("a graph is released that is not there");
      return {};
    case v1::RecordEntry::kEnd:
      ended_ = true;
      return {};
    default:
      return bad_recording("an entry of a kind that this version does not know");
  }
}

Status Checker::accept(const v1::RecordHeader& header) {
  if (begun_) return bad_recording("a second header");
  if (header.version() != format_version) {
    return bad_recording("it is of version " + std::to_string(header.version()) +
                         ", and this program reads version " + std::to_string(format_version));
  }
  begun_ = true;
  return {};
}

Status Checker::check_range(std::uint64_t plane, std::uint64_t offset, std::uint64_t bytes) const {
  if (plane == 0 || plane > planes_.size())
    return bad_recording("there is no plane " + std::to_string(plane));
  const std::uint64_t all = planes_[plane - 1];
  if (offset <= all && bytes <= all - offset) return {};
  return bad_recording("bytes " + std::to_string(offset) + " and " + std::to_string(bytes) +
                       " more of plane " + std::to_string(plane) + ", which has " + std::to_string(all));
}

Status Checker::check_graph(std::uint64_t graph) const {
  return graphs_.contains(graph) ? Status() : bad_recording("there is no graph " + std::to_string(graph));
}

template <typename Description>
Status Checker::check_planes(const v1::RecordRequest& request, const Description& description) const {
  if (request.planes_size() != description.planes_size()) {
    return bad_recording("request " + std::to_string(request.number()) + " numbers " +
                         std::to_string(request.planes_size()) + " planes, and its description has " +
                         std::to_string(description.planes_size()));
  }
  for (int i = 0; i < request.planes_size(); ++i) {
    const std::uint64_t plane = request.planes(i);
    if ((plane == 0) != description.planes(i).has_scratch())
      return bad_recording("a plane without a number is scratch, and no other is");
    if (plane == 0) continue;
    EAGLE_RETURN_IF_ERROR(check_range(plane, 0, 0));
  }
  return {};
}

Status Checker::accept(const v1::RecordRequest& request) {
  if (request.number() != last_request_ + 1) return bad_recording("request numbers do not count up");
  if (request.number() > limits_.requests) return over("requests", limits_.requests);
  if (open_.size() >= limits_.open_requests)
    return over("requests without an outcome", limits_.open_requests);
  switch (request.kind_case()) {
    case v1::RecordRequest::kBuild:
      if (request.graph() != last_graph_ + 1) return bad_recording("graph numbers do not count up");
      if (graphs_.size() >= limits_.graphs) return over("graphs", limits_.graphs);
      EAGLE_RETURN_IF_ERROR(check_planes(request, request.build()));
      last_graph_ = request.graph();
      graphs_.insert(request.graph());
      break;
    case v1::RecordRequest::kRebind:
      EAGLE_RETURN_IF_ERROR(check_graph(request.graph()));
      EAGLE_RETURN_IF_ERROR(check_planes(request, request.rebind()));
      break;
    case v1::RecordRequest::kUpdate:
      EAGLE_RETURN_IF_ERROR(check_graph(request.graph()));
      break;
    case v1::RecordRequest::kLaunch:
      EAGLE_RETURN_IF_ERROR(check_graph(request.graph()));
      if (request.launch().count() < 0 || request.launch().timeout_ms() < 0)
        return bad_recording("a launch of fewer than 0 replays, or with less than no time");
      break;
    case v1::RecordRequest::kRun:
      EAGLE_RETURN_IF_ERROR(check_planes(request, request.run().run()));
      if (request.run().timeout_ms() < 0) return bad_recording("a run with less than no time");
      break;
    case v1::RecordRequest::kAccept:
      for (const auto& part : request.accept().parts())
        EAGLE_RETURN_IF_ERROR(check_range(part.plane(), 0, 0));
      break;
    default:
      return bad_recording("a request of a kind that this version does not know");
  }
  last_request_ = request.number();
  open_.emplace(request.number(), Open{request.has_build() ? request.graph() : 0, planes_.size()});
  return {};
}

Status Checker::accept(const v1::RecordHostCall& call) {
  if (!open_.contains(call.request())) return bad_recording("a host call of a request that is not under way");
  if (++host_calls_ > limits_.host_calls) return over("host calls", limits_.host_calls);
  return {};
}

Status Checker::accept(const v1::RecordOutcome& outcome) {
  const auto open = open_.find(outcome.request());
  if (open == open_.end()) return bad_recording("an outcome of a request that is not under way");
  const Open request = open->second;
  if (!outcome.reason().empty()) graphs_.erase(request.graph);  // what could not be built is not there
  open_.erase(open);
  return check_outcome(outcome, request.planes);
}

Status check_outcome(const v1::RecordOutcome& outcome, std::uint64_t planes) {
  if (!is_time(outcome.wall_s())) return bad_recording("an outcome that took no time");
  for (const v1::RecordDigest& digest : outcome.digests()) {
    // A replay looks at it when it makes the request.
    if (digest.plane() == 0 || digest.plane() > planes) {
      return bad_recording("an outcome tells of plane " + std::to_string(digest.plane()) +
                           ", and its request had " + std::to_string(planes));
    }
    if (digest.sha256().size() != 32) return bad_recording("a digest that is none");
  }
  return {};
}

}  // namespace eagle::record
