// PlaneStore: the planes of one session, and the tokens that hand their descriptors over.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"
#include "engine/base/unique_fd.h"
#include "engine/graph/graph.h"
#include "engine/plane/memory.h"
#include "engine/plane/torn_views.h"
#include "server/limits.h"
#include "server/plane_budget.h"
#include "server/recycled_memory.h"
#include "server/state_log.h"
#include "server/tenants.h"

namespace eagle::server {

// Bytes of the daemon, which the planes of several sessions may reach. Thread-safe.
class PlaneBytes {
public:
  // `bin`: where the memory goes when nobody has use for it any more, as long as its session is there.
  PlaneBytes(plane::Memory memory, PlaneBudget::Charge charge, Tenant::Share share = {},
             std::weak_ptr<RecycledMemory::Bin> bin = {})
      : charge_(std::move(charge)),
        share_(std::move(share)),
        bin_(std::move(bin)),
        data_(memory.data()),
        bytes_(memory.bytes()),
        memory_(std::move(memory)) {}
  PlaneBytes(const PlaneBytes&) = delete;
  PlaneBytes& operator=(const PlaneBytes&) = delete;
  // Frees them even where a client kept its descriptor, unless they were left to it: what it keeps is then
  // zeros and its own.
  ~PlaneBytes();

  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] std::uint64_t size() const { return bytes_; }
  // A descriptor left this process, or is about to.
  [[nodiscard]] bool fetched() const { return fetched_.load(std::memory_order_acquire); }
  void mark_fetched() { fetched_.store(true, std::memory_order_release); }
  // Whoever has mapped them keeps them when this object goes.
  void leave_to_clients() { left_.store(true, std::memory_order_release); }
  // Another session has them as well: they are not used again for other arrays.
  void mark_shared() { shared_.store(true, std::memory_order_release); }
  // The plane that they were made for.
  void set_plane(graph::PlaneId plane) { plane_ = plane; }
  // What launches left half written, and nobody wrote anew or accepted since.
  [[nodiscard]] plane::TornViews& torn() { return torn_; }

  // A descriptor to send. A read-only one cannot be mapped for writing, nor opened anew for it by another
  // user: the file's mode is 0600. SYSTEM.
  StatusOr<UniqueFd> descriptor(bool read_only) const;
  // Moves the bytes to a file that nobody else has mapped, at the same address here. Not while anything is
  // stored in them, nor by two threads at once. Whoever asks for a descriptor meanwhile gets one of the old
  // file, as if it had asked before.
  Status move_to_fresh(std::string_view label);

private:
  PlaneBudget::Charge charge_;  // given back after the memory
  Tenant::Share share_;         // likewise: of the tenant who made them
  const std::weak_ptr<RecycledMemory::Bin> bin_;
  graph::PlaneId plane_;  // set before anybody else knows of this
  std::byte* const data_;
  const std::uint64_t bytes_;
  std::atomic<bool> fetched_ = false;
  std::atomic<bool> left_ = false;
  std::atomic<bool> shared_ = false;
  mutable std::mutex mutex_;  // guards the descriptor in memory_
  plane::Memory memory_;
  plane::TornViews torn_;
};

// One plane of a session: some bytes, and what the session may do with them. Whoever uses the bytes (graphs,
// runs, replies in flight) holds a shared_ptr: they go with the last of them, however early the client
// released it.
class Plane {
public:
  enum class Access : std::uint8_t { own, granted, granted_for_reading };
  Plane(std::string label, std::shared_ptr<PlaneBytes> bytes, Access access)
      : label_(std::move(label)), access_(access), bytes_(std::move(bytes)) {}
  Plane(const Plane&) = delete;
  Plane& operator=(const Plane&) = delete;

  [[nodiscard]] graph::PlaneId id() const { return id_; }
  [[nodiscard]] const std::string& label() const { return label_; }
  [[nodiscard]] std::byte* data() const { return bytes_->data(); }
  [[nodiscard]] std::uint64_t size() const { return bytes_->size(); }
  [[nodiscard]] const std::shared_ptr<PlaneBytes>& bytes() const { return bytes_; }
  // As in PlaneBytes: of whichever session.
  [[nodiscard]] plane::TornViews& torn() { return bytes_->torn(); }
  [[nodiscard]] const plane::TornViews& torn() const { return bytes_->torn(); }
  // All of it: whoever was at work on it is gone, and where it was is not known.
  void mark_torn(std::string what) { mark_torn(0, size(), std::move(what)); }
  // So many bytes of it.
  void mark_torn(std::uint64_t offset, std::uint64_t bytes, std::string what);
  [[nodiscard]] bool fetched() const { return bytes_->fetched(); }
  // Made by another session.
  [[nodiscard]] bool granted() const { return access_.load(std::memory_order_acquire) != Access::own; }
  [[nodiscard]] bool read_only() const {
    return access_.load(std::memory_order_acquire) == Access::granted_for_reading;
  }
  // The client gave it up, or its owner took it back: no new use.
  [[nodiscard]] bool released() const { return released_.load(std::memory_order_acquire); }

private:
  friend class PlaneStore;
  graph::PlaneId id_;
  std::string label_;
  std::atomic<Access> access_;
  std::atomic<bool> released_ = false;
  const std::shared_ptr<PlaneBytes> bytes_;
};

// What each of them holds; null stays null.
std::vector<const PlaneBytes*> bytes_of(std::span<Plane* const> planes);

// UNKNOWN_PLANE, for an id that names nothing (any more).
Status unknown_plane(graph::PlaneId id);

// Thread-safe. Ids are used again with the next generation, so that a stale reference is told apart.
class PlaneStore {
public:
  using Token = std::array<std::uint8_t, 24>;
  struct Spec {
    std::uint64_t bytes = 0;
    std::string label;
    // Whoever asked clears the memory where it has to; else it is cleared here.
    bool may_be_uncleared = false;
  };
  struct Created {
    std::shared_ptr<Plane> plane;
    Token token{};
    // The plane of this session whose memory it has, as that left it; id 0: it has zeros.
    graph::PlaneId recycled = {};
  };
  using Planes = std::vector<std::shared_ptr<Plane>>;

  // Where the store's planes are written down: null where they need not survive this process. The first
  // generation is above those of workers before this one, so that what they had released stays stale.
  struct Record {
    StateLog* log = nullptr;
    std::uint64_t session = 0;
    std::uint64_t first_generation = 0;
  };
  // Planes count for the tenant (may be null) as well.
  PlaneStore(PlaneBudget& budget, const Limits& limits, std::shared_ptr<Tenant> tenant = nullptr)
      : PlaneStore(budget, limits, std::move(tenant), Record{}) {}
  PlaneStore(PlaneBudget& budget, const Limits& limits, std::shared_ptr<Tenant> tenant, Record record)
      : budget_(budget),
        limits_(limits),
        tenant_(std::move(tenant)),
        record_(record),
        bin_(std::make_shared<RecycledMemory::Bin>(budget.recycled())) {}

  // All or none. BAD_VALUE, PLANE_BUDGET, QUOTA, OUT_OF_MEMORY, SESSION_CLOSED. Takes the time that the
  // system needs to find the memory; CANCELLED if `given_up` (may be empty) says so meanwhile.
  StatusOr<std::vector<Created>> create(std::span<const Spec> specs,
                                        const std::function<bool()>& given_up = {});
  // A plane over bytes of another session, or the one over them that this session has already: two planes
  // over the same bytes would hide from each other what conflicts. It may be written from now on unless
  // `read_only`. The token is fresh. It is not written down: another worker does not know of it. QUOTA,
  // SESSION_CLOSED.
  StatusOr<Created> adopt(const std::string& label, const std::shared_ptr<PlaneBytes>& bytes, bool read_only);
  // A fresh token for a plane, for who has to map it anew. UNKNOWN_PLANE.
  StatusOr<Created> renew(graph::PlaneId id);
  // The bytes of a plane have moved: written down anew, where it is this session's own.
  Status note_moved(const std::shared_ptr<Plane>& plane);
  // All or none: UNKNOWN_PLANE.
  Status release(std::span<const graph::PlaneId> ids);
  // A plane that another worker made, and that is written down already. In the order of their ids, before all
  // else. BAD_MESSAGE: it cannot be.
  Status restore(graph::PlaneId id, std::string label, std::uint64_t bytes, UniqueFd memory);
  StatusOr<std::shared_ptr<Plane>> find(graph::PlaneId id) const;
  // The view's bytes are fine as they are, whatever a launch left there: marks of half written arrays that
  // share a byte with it go. UNKNOWN_PLANE, VIEW_OUTSIDE_PLANE, BAD_VALUE.
  Status accept(graph::PlaneId id, const plane::View& view) const;
  // Of those planes that exist.
  [[nodiscard]] std::uint64_t bytes_of(std::span<const graph::PlaneId> ids) const;
  [[nodiscard]] Planes list() const;

  // The planes that the tokens stand for, in their order. UNKNOWN_PLANE unless each is one of this
  // session's, unspent, and named once. `spend` once the descriptors are on their way.
  StatusOr<Planes> redeemable(std::span<const std::string_view> tokens) const;
  void spend(std::span<const std::string_view> tokens);

  // Ends the store and gives its planes to the caller, released.
  Planes close();

private:
  struct Slot {
    explicit Slot(std::uint64_t first_generation) : generation(first_generation) {}
    std::uint64_t generation;
    std::shared_ptr<Plane> plane;  // null: free
    Token token{};
    bool token_spent = true;
  };
  StatusOr<Created> make(const Spec& spec, const std::function<bool()>& given_up) const;
  // An id for each, which nobody else gets meanwhile.
  Status number(std::vector<Created>& made);
  void number(Plane& plane);  // with the lock held
  Status write_down(std::span<const Created> made);
  // `ids`: of planes that this session made.
  Status write_down_release(std::span<const graph::PlaneId> ids);
  void insert(const Created& created);
  StatusOr<Created> renewed(Slot& slot);
  [[nodiscard]] const Slot* slot_of(graph::PlaneId id) const;

  PlaneBudget& budget_;
  const Limits& limits_;
  const std::shared_ptr<Tenant> tenant_;
  const Record record_;
  mutable std::mutex mutex_;
  bool closed_ = false;
  std::shared_ptr<RecycledMemory::Bin> bin_;                  // null: closed
  std::deque<Slot> slots_;                                    // plane id - 1
  std::vector<std::uint64_t> free_;                           // ids
  std::map<std::string, std::uint64_t, std::less<>> tokens_;  // unspent token to plane id
};

}  // namespace eagle::server
