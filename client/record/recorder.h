// Recorder: what a session asks for, written down as it goes on.
//
// A request is written before it is made, so that one in which its process dies is there. With contents, what
// planes hold is written where it differs from what a replay would have there by then. When the file cannot
// grow any more the recording ends, with one line on stderr, and the session goes on. A forked child writes
// nothing. Thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/host.h"
#include "client/record/contents.h"
#include "client/record/format.h"
#include "eagle/client/session.h"
#include "engine/base/status.h"

namespace eagle::v1 {
class PlaneDeclaration;
class RecordEntry;
class RecordHostCall;
class RecordOutcome;
class RecordRequest;
}  // namespace eagle::v1

namespace google::protobuf {
template <typename Element>
class RepeatedPtrField;
}

namespace eagle::record {

class Recorder {
public:
  using Declarations = google::protobuf::RepeatedPtrField<v1::PlaneDeclaration>;

  // Brings what an array holds that lies on a GPU, row-major. Called with and without the recorder's lock.
  using Fetch = std::function<Status(const ArrayView& array, std::span<std::byte> packed)>;

  // `copies`: planes are elsewhere, and what they hold passes through `stored`. `beside`: no file is replaced
  // (format.h). BAD_VALUE.
  static StatusOr<std::shared_ptr<Recorder>> create(const RecordingOptions& options, const SessionInfo& info,
                                                    bool copies, Fetch fetch, bool beside);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // A session has this array now, of so many bytes; it is fresh, or one that others wrote already.
  void holds(const PlaneAddress& where, std::uint64_t bytes, std::byte* data, bool fresh);
  // The array got these values, packed, where planes are elsewhere.
  void stored(const PlaneAddress& where, const ArrayView& array, std::span<const std::byte> packed);
  // Every element of it got this value.
  void filled(const PlaneAddress& where, const ArrayView& array, std::span<const std::byte> element);

  // The planes of a description, by index.
  struct Part {
    std::uint64_t number = 0;  // 0: scratch
    std::byte* data = nullptr;
    std::uint64_t bytes = 0;
    bool on_gpu = false;
  };
  using Parts = std::vector<Part>;
  Parts parts_of(const Declarations& declarations, std::span<const run::PlaneMemory> private_planes);

  std::uint64_t next_graph();
  // Writes down what the parts hold now, and the request; its number. `fill` makes its kind.
  std::uint64_t begin(const Parts& parts, bool describes, std::uint64_t graph,
                      const std::function<void(v1::RecordRequest&)>& fill);
  // `on_gpu`: it worked on arrays of a GPU where they lie, and not on copies in this process.
  void host_call(std::uint64_t request, std::uint32_t call, const Status& status, bool stop,
                 const Parts& parts, const std::vector<plane::View>& writes, bool on_gpu);
  // `whole`: it ran to its end, and a replay leaves the same in its planes. `fill` adds what it gave.
  void end(std::uint64_t request, const Status& status, std::chrono::steady_clock::time_point begun,
           const Parts& parts, bool whole, const std::function<void(v1::RecordOutcome&)>& fill);
  // Nobody knows what the planes hold from now on: something else writes them.
  void forget(const Parts& parts);
  void forget_all();
  void release(std::uint64_t graph);
  void accept(const v1::AcceptPlanesRequest& request);
  void close();

private:
  void store(const PlaneAddress& where, const ArrayView& array, std::uint64_t piece,
             const std::function<std::span<const std::byte>(std::uint64_t, std::size_t)>& content);
  struct Known {
    std::uint64_t bytes = 0;
    std::byte* data = nullptr;  // of a plane on a GPU: what stands for it in this process
    bool on_gpu = false;
    std::vector<std::optional<Digest>> pieces;  // of what a replay has there; empty: nobody knows
  };

  Recorder(Writer writer, bool contents, bool copies, Fetch fetch);
  // All below with the lock held.
  [[nodiscard]] bool writes() const;
  void write(v1::RecordEntry& entry);
  void stop(const Status& why);
  Known& number(std::uint64_t& number, std::uint64_t bytes, std::byte* data, bool is_private,
                const std::string& device = {});
  // What is in a piece now; of a plane on a GPU by way of `room`.
  [[nodiscard]] StatusOr<std::span<const std::byte>> piece_of(const Known& plane, std::size_t piece,
                                                              std::vector<std::byte>& room) const;
  void write_contents(std::uint64_t number);
  std::optional<Digest> write_digests(std::uint64_t number);  // empty: the GPU does not tell

  const std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  const int pid_;
  const bool contents_;
  const bool copies_;
  const Fetch fetch_;
  std::mutex mutex_;
  std::optional<Writer> writer_;  // empty: it has ended
  std::uint64_t last_request_ = 0;
  std::uint64_t last_graph_ = 0;
  std::vector<Known> planes_;                                                    // by number - 1
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t> shared_;      // plane id and generation
  std::map<std::pair<const std::byte*, std::uint64_t>, std::uint64_t> private_;  // where, and how large
};

}  // namespace eagle::record
