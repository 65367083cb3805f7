// Ledger: which work is under way, in memory that outlives the worker: plain stores, read after its death.
//
// A worker notes a launch or run before its first store, with the planes that it writes, and crosses it out
// when it has ended. What the next worker finds noted was cut off: those planes are torn. What was computing
// in the very moment of the death is what the keeper suspects.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
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
  // The same, once: from then on it is noted as cut off, and as computing no more. So a death is laid to it,
  // and not those of workers that die before they look.
  std::vector<GraphHash> take_running();
  void clear();

  // One line, for whoever runs the work. Lines are limited: an empty one does nothing.
  class Line {
  public:
    Line() = default;
    Line(Line&& other) noexcept : ledger_(std::exchange(other.ledger_, nullptr)), index_(other.index_) {}
    Line& operator=(Line&& other) noexcept;
    ~Line() { cross_out(); }
    // Around every piece of computing.
    void computes(bool now);
    void cross_out();

  private:
    friend class Ledger;
    Ledger* ledger_ = nullptr;
    std::size_t index_ = 0;
  };
  // Thread-safe. The ledger stays where it is while it has lines.
  Line note(std::uint64_t session, const GraphHash& hash, std::span<const Range> written);

private:
  struct Entry;
  struct Entries;
  explicit Ledger(plane::Memory memory);
  [[nodiscard]] Entries& entries() const;

  plane::Memory memory_;
  std::unique_ptr<std::mutex> mutex_;
  std::vector<std::size_t> free_;
};

// "plane 3 bytes 64 to 128, ..."
std::string text_of(const std::vector<Ledger::Range>& ranges);
// Adds what the view may reach, once; nothing where there are more ranges already than a line has room for.
void add_range(std::vector<Ledger::Range>& ranges, const graph::PlaneId& plane, const plane::View& view);

}  // namespace eagle::server
