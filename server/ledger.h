// Ledger: which work is under way, in memory that outlives the worker: plain stores, read after its death.
//
// A worker notes a launch or run before its first store, with the planes that it writes, and crosses it out
// when it has ended. What the next worker finds noted was cut off: those planes are torn. What was computing
// in the very moment of the death is what the keeper suspects.
//
// It also keeps which launches of each session have begun, the last few of them: one that certainly has not
// may be given to the next worker.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "engine/base/unique_fd.h"
#include "engine/graph/graph.h"
#include "engine/plane/memory.h"
#include "engine/plane/view.h"

namespace eagle::server {

// Of a graph's description without its planes: the first half of a SHA-256.
using GraphHash = std::array<std::uint8_t, 16>;
std::string text_of(const GraphHash& hash);

// So many deaths of a worker while a graph runs, and it is not launched again.
constexpr std::uint32_t deaths_to_quarantine = 2;

class Ledger {
public:
  // A new one, or the one that a keeper handed over. OUT_OF_MEMORY, SYSTEM, BAD_MESSAGE.
  static StatusOr<Ledger> create();
  static StatusOr<Ledger> open(UniqueFd fd);
  // One that a keeper of this version or the one before left; what an older one lacks is empty.
  static StatusOr<Ledger> adopt(UniqueFd fd);

  [[nodiscard]] int fd() const { return memory_.fd(); }

  // Bytes of a plane: all that a written view may reach.
  struct Range {
    graph::PlaneId plane;
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    friend bool operator==(const Range&, const Range&) = default;
  };
  struct Cut {
    std::uint64_t session = 0;
    std::vector<Range> written;
    bool all_planes = false;  // there were too many to note: anything of the session's
  };
  // What was noted and not crossed out.
  [[nodiscard]] std::vector<Cut> cut_off() const;
  // What was computing.
  [[nodiscard]] std::vector<GraphHash> running() const;
  // What a death is laid to, once: from then on it is noted as cut off, and as computing no more. So it is
  // not laid to it that workers die before they look. What a GPU computed waited for that: it is meant only
  // where nothing else computed.
  std::vector<GraphHash> take_running();
  void clear();

  // One line, for whoever runs the work. There are as many as there may be jobs; an empty one does nothing.
  class Line {
  public:
    Line() = default;
    Line(Line&& other) noexcept : ledger_(std::exchange(other.ledger_, nullptr)), index_(other.index_) {}
    Line& operator=(Line&& other) noexcept;
    ~Line() { cross_out(); }
    // Around every piece of computing.
    void computes(bool now, bool on_gpu = false);
    void cross_out();

  private:
    friend class Ledger;
    Ledger* ledger_ = nullptr;
    std::size_t index_ = 0;
  };
  // Thread-safe. The ledger stays where it is while it has lines.
  Line note(std::uint64_t session, const GraphHash& hash, std::span<const Range> written);

  // The launches of one session, by their ids, which its client makes in rising order. Empty: nothing is
  // known, and everything may have begun.
  class Begun {
  public:
    Begun() = default;
    Begun(Begun&& other) noexcept : ledger_(std::exchange(other.ledger_, nullptr)), index_(other.index_) {}
    Begun& operator=(Begun&&) = delete;
    ~Begun();  // the session has ended
    // Before the launch's first store. One thread at a time.
    void note(std::uint64_t launch_id);
    // False: it certainly has not. Thread-safe.
    [[nodiscard]] bool may_have(std::uint64_t launch_id) const;

  private:
    friend class Ledger;
    Ledger* ledger_ = nullptr;
    std::size_t index_ = 0;
  };
  // Of a new session, or as the worker before this one `left` it: empty where that one had no room, or was of
  // a version that did not note it. Thread-safe. The ledger stays where it is meanwhile.
  Begun begun(std::uint64_t session, bool left = false);
  // Forgets sessions that nobody has asked for by now: they are not there any more.
  void forget_unclaimed();

private:
  struct Entry;
  struct Window;
  struct Contents;
  struct FewLines;
  struct FewerLines;
  explicit Ledger(plane::Memory memory);
  [[nodiscard]] Contents& contents() const;

  plane::Memory memory_;
  struct Lines {
    static constexpr std::size_t none = SIZE_MAX;
    std::mutex mutex;  // of the lists below
    // The free line that was crossed out last, beside the others: mostly the next one to be noted, without
    // the mutex.
    std::atomic<std::size_t> last = none;
  };
  std::unique_ptr<Lines> lines_;
  std::vector<std::size_t> free_;
  std::vector<std::size_t> free_windows_;
  std::map<std::uint64_t, std::size_t> unclaimed_;  // windows of another worker's sessions
};

// "plane 3 bytes 64 to 128, ..."
std::string text_of(const std::vector<Ledger::Range>& ranges);
// Adds what the view may reach, once; nothing where there are more ranges already than a line has room for.
void add_range(std::vector<Ledger::Range>& ranges, const graph::PlaneId& plane, const plane::View& view);

}  // namespace eagle::server
