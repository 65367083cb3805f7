// RecycledMemory: memory of planes that were released, kept for planes to come of the same session.
//
// The system finds and clears about a gigabyte a second; what is kept is there at once, pages and all. It
// holds what its session left there, which nobody else ever sees. It stays charged to the budget, and makes
// way when the budget is short, when it was of no use for a while, and when its session ends.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "engine/graph/graph.h"
#include "engine/plane/memory.h"
#include "server/plane_budget.h"
#include "server/principal.h"

namespace eagle::server {

// Thread-safe; outlives its bins.
class RecycledMemory {
public:
  using Clock = std::chrono::steady_clock;
  // The charge is given back after the memory, which is freed even where a client still maps it.
  class Piece {
  public:
    // `plane`: whose memory it was. `mapped_by`: the session's processes that may have it mapped.
    Piece(PlaneBudget::Charge charge, plane::Memory memory, graph::PlaneId plane,
          std::vector<ProcessRef> mapped_by = {})
        : charge_(std::move(charge)),
          memory_(std::move(memory)),
          plane_(plane),
          mapped_by_(std::move(mapped_by)) {}
    Piece(Piece&&) noexcept = default;
    Piece& operator=(Piece&&) = delete;
    ~Piece() { memory_.discard(); }
    [[nodiscard]] std::uint64_t bytes() const { return memory_.bytes(); }
    [[nodiscard]] graph::PlaneId plane() const { return plane_; }
    [[nodiscard]] const std::vector<ProcessRef>& mapped_by() const { return mapped_by_; }
    // Whoever takes one takes both.
    PlaneBudget::Charge take_charge() { return std::move(charge_); }
    plane::Memory take_memory() { return std::move(memory_); }

  private:
    PlaneBudget::Charge charge_;
    plane::Memory memory_;
    graph::PlaneId plane_;
    std::vector<ProcessRef> mapped_by_;
  };

  // What one session keeps; goes with it.
  class Bin {
  public:
    explicit Bin(RecycledMemory& all) : all_(all) {}
    ~Bin();
    Bin(const Bin&) = delete;
    Bin& operator=(const Bin&) = delete;

    // Small pieces and what is more than a session may keep are freed, the oldest first.
    void keep(Piece piece, Clock::time_point now = Clock::now());
    // Of exactly so many bytes, the one that was used last; its contents are what they were.
    std::optional<Piece> take(std::uint64_t bytes);

  private:
    friend RecycledMemory;
    struct Kept {
      Bin* bin;
      Piece piece;
      Clock::time_point since;
    };
    using Place = std::list<Kept>::iterator;
    RecycledMemory& all_;
    std::multimap<std::uint64_t, Place> by_bytes_;  // equal ones in the order in which they came
    std::uint64_t bytes_ = 0;
  };

  // A smaller piece is found as quickly as it is passed on.
  static constexpr std::uint64_t least_bytes = 256u << 10;
  // `most_bytes`: that a session keeps.
  explicit RecycledMemory(std::uint64_t most_bytes) : most_bytes_(most_bytes) {}

  // Frees the oldest piece; false when nothing is kept.
  bool give_back_oldest();
  // What nobody wanted since then, for the caller to free: that takes its time.
  std::vector<Piece> take_older_than(Clock::time_point then);

  [[nodiscard]] std::uint64_t bytes() const;
  [[nodiscard]] std::size_t pieces() const;

private:
  // With the lock held.
  Piece remove(Bin::Place place);

  const std::uint64_t most_bytes_;
  mutable std::mutex mutex_;
  std::list<Bin::Kept> kept_;  // of all sessions, the oldest first
  std::uint64_t bytes_ = 0;
};

}  // namespace eagle::server
