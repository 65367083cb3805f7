// PlaneBudget: the bytes and the number of planes that all sessions together may have, and what the daemon
// keeps besides them because clients asked for it: descriptions of graphs, rings, entries of opened arrays,
// names with their grants, what is said of submitted runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

#include "engine/base/status.h"
#include "server/limits.h"

namespace eagle::server {

class RecycledMemory;

// Admission comes before allocation: reserving memory over the limit of a cgroup ends the process that
// tries. Thread-safe; outlives its charges.
class PlaneBudget {
public:
  // What one plane takes, or something else that is kept; given back when it goes.
  class Charge {
  public:
    Charge() = default;
    Charge(Charge&& other) noexcept;
    Charge& operator=(Charge&& other) noexcept;
    Charge(const Charge&) = delete;
    Charge& operator=(const Charge&) = delete;
    ~Charge();
    // Becomes what both take. Both are of one kind, or this one is empty.
    void add(Charge more);
    [[nodiscard]] std::uint64_t bytes() const { return budget_ == nullptr ? 0 : bytes_; }

  private:
    friend class PlaneBudget;
    Charge(PlaneBudget* budget, std::uint64_t bytes, bool plane)
        : budget_(budget), bytes_(bytes), plane_(plane) {}
    PlaneBudget* budget_ = nullptr;
    std::uint64_t bytes_ = 0;
    bool plane_ = false;
  };

  // `recycled_bytes`: that a session may keep of what it released.
  PlaneBudget(std::uint64_t bytes, std::size_t planes, std::uint64_t recycled_bytes = 0);
  ~PlaneBudget();
  PlaneBudget(const PlaneBudget&) = delete;
  PlaneBudget& operator=(const PlaneBudget&) = delete;

  // Charges whole pages; what is kept for later makes way. PLANE_BUDGET says what was asked, is used and is
  // there; QUOTA (planes).
  StatusOr<Charge> charge(std::uint64_t bytes);
  // For a plane that exists already, whatever the limits are now.
  Charge adopt(std::uint64_t bytes);
  // For what is no plane, `what` for people ("the description of a graph"). PLANE_BUDGET.
  StatusOr<Charge> charge_for(const char* what, std::uint64_t bytes);
  // Of that, what exists already.
  Charge adopt_other(std::uint64_t bytes);
  // What a plane of so many bytes takes; saturates.
  static std::uint64_t whole_pages(std::uint64_t bytes);

  // What is kept of released planes.
  [[nodiscard]] RecycledMemory& recycled() { return *recycled_; }
  // What is over a lower number stays.
  void set_planes(std::size_t planes) { planes_ = planes; }

  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  // Of planes, without what is kept for later.
  [[nodiscard]] std::uint64_t used_bytes() const;
  // Of what is no plane.
  [[nodiscard]] std::uint64_t other_bytes() const;
  [[nodiscard]] std::size_t used_planes() const;

private:
  StatusOr<Charge> try_charge(std::uint64_t bytes);
  StatusOr<Charge> try_charge_for(const char* what, std::uint64_t bytes);
  [[nodiscard]] std::uint64_t left() const;            // with the lock held
  Charge take(std::uint64_t pages_bytes, bool plane);  // likewise
  void give_back(std::uint64_t bytes, bool plane);

  const std::uint64_t bytes_;
  Bound<std::size_t> planes_;
  mutable std::mutex mutex_;
  std::uint64_t used_bytes_ = 0;
  std::size_t used_planes_ = 0;
  std::uint64_t other_bytes_ = 0;
  const std::unique_ptr<RecycledMemory> recycled_;  // goes first: it holds charges
};

}  // namespace eagle::server
