// PlaneBudget: the bytes and the number of planes that all sessions together may have.
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
  // What one plane takes; given back when it goes.
  class Charge {
  public:
    Charge() = default;
    Charge(Charge&& other) noexcept;
    Charge& operator=(Charge&& other) noexcept;
    Charge(const Charge&) = delete;
    Charge& operator=(const Charge&) = delete;
    ~Charge();

  private:
    friend class PlaneBudget;
    Charge(PlaneBudget* budget, std::uint64_t bytes) : budget_(budget), bytes_(bytes) {}
    PlaneBudget* budget_ = nullptr;
    std::uint64_t bytes_ = 0;
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

  // What is kept of released planes.
  [[nodiscard]] RecycledMemory& recycled() { return *recycled_; }
  // What is over a lower number stays.
  void set_planes(std::size_t planes) { planes_ = planes; }

  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  // Without what is kept for later.
  [[nodiscard]] std::uint64_t used_bytes() const;
  [[nodiscard]] std::size_t used_planes() const;

private:
  StatusOr<Charge> try_charge(std::uint64_t bytes);
  Charge take(std::uint64_t pages_bytes);  // with the lock held
  void give_back(std::uint64_t bytes);

  const std::uint64_t bytes_;
  Bound<std::size_t> planes_;
  mutable std::mutex mutex_;
  std::uint64_t used_bytes_ = 0;
  std::size_t used_planes_ = 0;
  const std::unique_ptr<RecycledMemory> recycled_;  // goes first: it holds charges
};

}  // namespace eagle::server
