// Checker: whether the entries of a recording make sense, one after the other.
//
// What it has accepted can be replayed as it is met: numbers count up from 1 and name what was declared,
// ranges lie within their planes, lists have the lengths that they must have. Whoever reads an entry out of
// turn, or a second time, looks again: a file can change. What descriptions mean is the engine's to check, as
// for every caller.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "engine/base/status.h"

namespace eagle::v1 {
class RecordEntry;
class RecordHeader;
class RecordHostCall;
class RecordOutcome;
class RecordRequest;
}  // namespace eagle::v1

namespace eagle::record {

// BAD_MESSAGE: what of a recording makes no sense.
Status bad_recording(const std::string& what);

struct Limits {
  std::uint64_t planes = 100'000;
  std::uint64_t plane_bytes = std::uint64_t{1} << 40;  // of all of them
  std::uint64_t graphs = 100'000;                      // at a time
  std::uint64_t requests = 10'000'000;
  std::uint64_t host_calls = 10'000'000;
  std::uint64_t open_requests = 4096;  // without an outcome, at a time
};

// Whether an outcome makes sense for a request before which so many planes were declared. BAD_MESSAGE.
Status check_outcome(const v1::RecordOutcome& outcome, std::uint64_t planes);

class Checker {
public:
  explicit Checker(const Limits& limits = {}) : limits_(limits) {}
  // BAD_MESSAGE says what is wrong; QUOTA names the limit.
  Status accept(const v1::RecordEntry& entry);

  [[nodiscard]] std::uint64_t plane_bytes() const { return plane_bytes_; }

private:
  Status accept(const v1::RecordHeader& header);
  Status accept(const v1::RecordRequest& request);
  Status accept(const v1::RecordHostCall& call);
  Status accept(const v1::RecordOutcome& outcome);
  Status check_range(std::uint64_t plane, std::uint64_t offset, std::uint64_t bytes) const;
  template <typename Description>
  Status check_planes(const v1::RecordRequest& request, const Description& description) const;
  Status check_graph(std::uint64_t graph) const;

  const Limits limits_;
  bool begun_ = false;
  bool ended_ = false;
  std::vector<std::uint64_t> planes_;  // bytes, by number - 1
  std::uint64_t plane_bytes_ = 0;
  std::set<std::uint64_t> graphs_;
  std::uint64_t last_graph_ = 0;
  std::uint64_t last_request_ = 0;
  std::uint64_t host_calls_ = 0;
  struct Open {
    std::uint64_t graph = 0;   // that it builds, or 0
    std::uint64_t planes = 0;  // that there were when it was made
  };
  std::map<std::uint64_t, Open> open_;  // requests without an outcome
};

}  // namespace eagle::record
