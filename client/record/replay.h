// Replaying a recording: its requests made again, one after the other, and what came of them compared.
//
// Requests that ran at the same time are made in the order in which they began. Callables are not in a
// recording: where contents are, what they left is put there; their errors come back as they were. A launch
// that its caller cancelled runs to its end. Arrays that lay on a GPU lie there again where the host has it,
// and else in its own memory, where their graphs give the same bits.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "client/host.h"
#include "client/record/checker.h"
#include "client/record/format.h"
#include "engine/base/status.h"

namespace eagle::record {

struct ReplayOptions {
  bool verify = false;   // compare the bits of planes, where the recording has digests of them
  bool on_host = false;  // no array lies on a GPU
  Limits limits;
  // Told once for each GPU whose arrays are put into memory of the host for want of it. May be empty.
  std::function<void(const std::string& device, const Status& why)> elsewhere = {};
};

// A request, as it was and as it is.
struct Replayed {
  enum class Bits : std::uint8_t { not_compared, equal, different };
  std::uint64_t number = 0;
  std::string kind;             // "build", "rebind", "update", "launch", "run", "submit", "accept"
  std::string graph;            // its name or number; empty for none
  std::string recorded_reason;  // empty: it went well
  std::string recorded_message;
  std::string reason;
  std::string message;
  double recorded_s = 0;
  double wall_s = 0;
  bool finished = true;    // false: the recording ends before its outcome
  bool comparable = true;  // false: its caller had cancelled it
  std::string counted;     // what else differs: launches, iterations, status, steps; empty: nothing
  Bits bits = Bits::not_compared;
  std::vector<std::uint64_t> different_planes;

  // Whether a replay is what the recording says.
  [[nodiscard]] bool same() const {
    return !comparable || !finished ||
           (recorded_reason == reason && counted.empty() && bits != Bits::different);
  }
};

// What a recording is, without making a request of it.
struct Summary {
  std::string client;
  std::string client_version;
  std::string host_version;
  std::string endpoint;
  std::string transport;
  std::string cpu;
  std::int64_t threads = 0;
  bool with_contents = false;
  bool cut_short = false;  // it ends in the middle of an entry, or without its end
  std::string end;         // why it ends before its session; empty: it does not
  double seconds = 0;
  std::uint64_t planes = 0;
  std::uint64_t plane_bytes = 0;
  std::uint64_t gpu_planes = 0;  // of them, that lay on a GPU
  std::uint64_t gpu_bytes = 0;
  std::uint64_t requests = 0;
  std::uint64_t launches = 0;
  std::uint64_t failed = 0;  // requests whose outcome is an error
};
// Reads all of it and checks every entry. BAD_MESSAGE, QUOTA.
StatusOr<Summary> summary_of(const File& file, const Limits& limits = {});

// Makes the requests on `host`, which is fresh. `each` hears of every one when it is over. An error is one of
// the recording itself, or of making room for its planes: not one that a request gets.
Status replay(Host& host, const File& file, const ReplayOptions& options,
              const std::function<void(const Replayed&)>& each);

}  // namespace eagle::record
