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
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "engine/base/unique_fd.h"
#include "engine/graph/graph.h"
#include "engine/plane/huge_pages.h"
#include "engine/plane/memory.h"
#include "engine/plane/packed.h"
#include "engine/plane/torn_views.h"
#include "server/gpus.h"
#include "server/limits.h"
#include "server/plane_budget.h"
#include "server/principal.h"
#include "server/recycled_memory.h"
#include "server/state_log.h"
#include "server/tenants.h"

namespace eagle::v1 {
class PlaneRecord;
}

namespace eagle::server {

// Bytes of the daemon, which the planes of several sessions may reach. Thread-safe.
class PlaneBytes {
public:
  // `bin`: where the memory goes when nobody has use for it any more, as long as its session is there. `id`:
  // by which it is known again that planes are over the same bytes.
  PlaneBytes(plane::Memory memory, PlaneBudget::Charge charge, Tenant::Share share = {},
             std::weak_ptr<RecycledMemory::Bin> bin = {}, std::uint64_t id = 0)
      : id_(id),
        charge_(std::move(charge)),
        share_(std::move(share)),
        bin_(std::move(bin)),
        data_(memory.data()),
        bytes_(memory.bytes()),
        memory_(std::move(memory)) {}
  // On a GPU: `data` is null, and nothing is written down, since the memory goes with this process.
  PlaneBytes(std::shared_ptr<const GpuMemory> gpu, Tenant::Share share, std::uint64_t id)
      : id_(id),
        share_(std::move(share)),
        data_(nullptr),
        bytes_(gpu->memory().bytes()),
        gpu_(std::move(gpu)) {}
  PlaneBytes(const PlaneBytes&) = delete;
  PlaneBytes& operator=(const PlaneBytes&) = delete;
  // Frees them even where a client kept its descriptor, unless they were left to it: what it keeps is then
  // zeros and its own.
  ~PlaneBytes();

  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] std::uint64_t size() const { return bytes_; }
  // Null: in memory of the host.
  [[nodiscard]] const std::shared_ptr<const GpuMemory>& gpu() const { return gpu_; }
  // Elements [first, first + size) of a view's packed bytes, wherever they are. SYSTEM: what the GPU's driver
  // says.
  Status read(const plane::Packed& packed, std::uint64_t first, std::span<std::byte> into) const;
  Status write(const plane::Packed& packed, std::uint64_t first, std::span<const std::byte> from) const;
  // A descriptor left this process, or is about to.
  [[nodiscard]] bool fetched() const { return fetched_.load(std::memory_order_acquire); }
  void mark_fetched() { fetched_.store(true, std::memory_order_release); }
  // A process of that session has it, or may have. Those that have ended are forgotten in time.
  void fetched_by(std::uint64_t session, const ProcessRef& process);
  // Whether a process of that session that still runs may have mapped them.
  [[nodiscard]] bool mapped_by(std::uint64_t session) const;
  // So many processes that still run.
  [[nodiscard]] std::size_t opened_by() const;
  [[nodiscard]] std::uint64_t id() const { return id_; }
  // Whom they count for, where that was not known at first.
  void count_for(Tenant::Share share) { share_ = std::move(share); }
  // Whoever has mapped them keeps them when this object goes.
  void leave_to_clients() { left_.store(true, std::memory_order_release); }
  // Another session has them as well: they are not used again for other arrays.
  void mark_shared() { shared_.store(true, std::memory_order_release); }
  // The plane that they were made for.
  void set_plane(graph::PlaneId plane) { plane_ = plane; }
  // What came of asking for huge pages; nothing where they were not asked for. Set before anybody else knows
  // of this.
  void set_huge_pages(plane::HugePages huge) { huge_pages_ = std::move(huge); }
  [[nodiscard]] const plane::HugePages& huge_pages() const { return huge_pages_; }
  // What launches left half written, and nobody wrote anew or accepted since.
  [[nodiscard]] plane::TornViews& torn() { return torn_; }
  // Where the marks are written down: with each plane over these bytes that is.
  void add_place(StateLog* log, const StateKey& plane);
  void remove_place(const StateKey& plane);
  // The log has some already.
  void note_torn_written() {
    const std::lock_guard lock(places_mutex_);
    torn_written_ = true;
  }
  // After each change of the marks. SYSTEM.
  Status write_down_torn();

  // A descriptor to send. A read-only one cannot be mapped for writing, nor opened anew for it by another
  // user: the file's mode is 0600. SYSTEM. Not of memory on a GPU.
  StatusOr<UniqueFd> descriptor(bool read_only) const;
  // To open memory on a GPU, in all of it. SYSTEM; BAD_VALUE for other memory.
  StatusOr<run::cuda::DeviceHandle> device_handle() const;
  // To move the bytes to a file that nobody else has mapped, at the same address here: copy all of them, then
  // `finish_move`. The old file keeps them, too. Not while anything is stored in them, nor twice at once.
  // Whoever asks for a descriptor before the end gets one of the old file, as if it had asked before.
  [[nodiscard]] StatusOr<plane::Memory::Move> begin_move(std::string_view label) const {
    return memory_.begin_move(label);
  }
  Status finish_move(plane::Memory::Move move) { return memory_.finish_move(std::move(move), mutex_); }

private:
  const std::uint64_t id_;
  PlaneBudget::Charge charge_;  // given back after the memory
  Tenant::Share share_;         // likewise: of the tenant who made them
  const std::weak_ptr<RecycledMemory::Bin> bin_;
  graph::PlaneId plane_;  // set before anybody else knows of this
  plane::HugePages huge_pages_;
  std::byte* const data_;
  const std::uint64_t bytes_;
  const std::shared_ptr<const GpuMemory> gpu_;
  std::atomic<bool> fetched_ = false;
  std::atomic<bool> left_ = false;
  std::atomic<bool> shared_ = false;
  mutable std::mutex mutex_;  // guards the descriptor in memory_
  plane::Memory memory_;
  plane::TornViews torn_;
  std::mutex places_mutex_;
  StateLog* log_ = nullptr;
  std::set<StateKey> places_;  // of entries of the log
  bool torn_written_ = false;  // they have some
  mutable std::mutex fetchers_mutex_;
  std::vector<std::pair<std::uint64_t, ProcessRef>> fetchers_;  // by session
  std::size_t look_at_ = 8;  // so many, and it is looked which of them still run
};

// One plane of a session: some bytes, and what the session may do with them. Whoever uses the bytes (graphs,
// runs, replies in flight) holds a shared_ptr: they go with the last of them, however early the client
// released it.
class Plane {
public:
  enum class Access : std::uint8_t { own, granted, granted_for_reading };
  // What a tenant's holding it counts for, and what is kept of one that the session did not make.
  struct Costs {
    Tenant::Share share;
    PlaneBudget::Charge charge;
  };
  // `opened_from`: for one of another session, whose it was when it was opened, by the name that is its
  // label.
  Plane(std::string label, std::shared_ptr<PlaneBytes> bytes, Access access, std::string opened_from = {},
        Costs costs = {})
      : label_(std::move(label)),
        opened_from_(std::move(opened_from)),
        costs_(std::move(costs)),
        access_(access),
        bytes_(std::move(bytes)) {}
  Plane(const Plane&) = delete;
  Plane& operator=(const Plane&) = delete;

  [[nodiscard]] graph::PlaneId id() const { return id_; }
  [[nodiscard]] const std::string& label() const { return label_; }
  [[nodiscard]] const std::string& opened_from() const { return opened_from_; }
  [[nodiscard]] std::byte* data() const { return bytes_->data(); }
  [[nodiscard]] std::uint64_t size() const { return bytes_->size(); }
  [[nodiscard]] const std::shared_ptr<PlaneBytes>& bytes() const { return bytes_; }
  [[nodiscard]] const GpuMemory* gpu() const { return bytes_->gpu().get(); }
  [[nodiscard]] std::string device() const {  // "cpu", "cuda:0"
    return gpu() == nullptr ? "cpu" : gpu()->unit()->name();
  }
  // As in PlaneBytes: of whichever session.
  [[nodiscard]] plane::TornViews& torn() { return bytes_->torn(); }
  [[nodiscard]] const plane::TornViews& torn() const { return bytes_->torn(); }
  // All of it: whoever was at work on it is gone, and where it was is not known.
  void mark_torn(std::string what) { mark_torn(0, size(), std::move(what)); }
  // So many bytes of it.
  void mark_torn(std::uint64_t offset, std::uint64_t bytes, std::string what);
  // As PlaneBytes::write_down_torn, where failing means that this process is about to end.
  void write_down_torn() { static_cast<void>(bytes_->write_down_torn()); }
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
  const std::string opened_from_;
  const Costs costs_;
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
    plane::Memory::PageSize pages = plane::Memory::PageSize::usual;
    // Makes memory on a GPU, once it counts for the tenant; empty: in memory of the host.
    std::function<StatusOr<std::shared_ptr<const GpuMemory>>()> gpu = {};
    // That memory is the client's, and counts for nobody here.
    bool imported = false;
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

  // Charged for a plane over bytes of another session or on a GPU: about what the worker and the journal keep
  // of it.
  static constexpr std::uint64_t entry_bytes = 2048;

  // All or none. BAD_VALUE, PLANE_BUDGET, QUOTA, OUT_OF_MEMORY, SESSION_CLOSED. Takes the time that the
  // system needs to find the memory; CANCELLED if `given_up` (may be empty) says so meanwhile.
  StatusOr<std::vector<Created>> create(std::span<const Spec> specs,
                                        const std::function<bool()>& given_up = {});
  // A plane over bytes of another session, or the one over them that this session has already: two planes
  // over the same bytes would hide from each other what conflicts. It may be written from now on unless
  // `read_only`. The token is fresh. `opened_from`: as in Plane. QUOTA, PLANE_BUDGET, SESSION_CLOSED.
  StatusOr<Created> adopt(const std::string& label, const std::shared_ptr<PlaneBytes>& bytes, bool read_only,
                          const std::string& opened_from = {});
  // A fresh token for a plane, for who has to map it anew. UNKNOWN_PLANE.
  StatusOr<Created> renew(graph::PlaneId id);
  // These bytes have moved: planes over them are written down anew.
  Status note_moved(const PlaneBytes& bytes);
  // All or none: UNKNOWN_PLANE.
  Status release(std::span<const graph::PlaneId> ids);
  // Those over memory of a client's process, once that is gone.
  void release_imports();
  // A plane of another worker, that is written down already. In the order of their ids, before all else.
  // BAD_MESSAGE: it cannot be.
  Status restore(std::uint64_t id, const v1::PlaneRecord& record, std::shared_ptr<PlaneBytes> bytes);
  // What is written down already of its half written views. BAD_MESSAGE.
  Status restore_torn(std::uint64_t plane, const std::string& record);
  StatusOr<std::shared_ptr<Plane>> find(graph::PlaneId id) const;
  // The view's bytes are fine as they are, whatever a launch left there: marks of half written arrays that
  // share a byte with it go. UNKNOWN_PLANE, VIEW_OUTSIDE_PLANE, BAD_VALUE.
  Status accept(graph::PlaneId id, const plane::View& view) const;
  // Of those planes that exist.
  [[nodiscard]] std::uint64_t bytes_of(std::span<const graph::PlaneId> ids) const;
  [[nodiscard]] Planes list() const;

  // The planes that the tokens stand for, in their order. UNKNOWN_PLANE unless each is one of this
  // session's, unspent, and named once. `spend` once the descriptors are on their way.
  // `process` gets them; null where it cannot be seen.
  StatusOr<Planes> redeemable(std::span<const std::string_view> tokens,
                              const ProcessRef& process = nullptr) const;
  void spend(std::span<const std::string_view> tokens);

  // Ends the store and gives its planes to the caller, released.
  Planes close();

  // What is written down of a plane; its descriptor goes to `descriptors`. SYSTEM.
  static StatusOr<StateChange> entry_of(std::uint64_t session, const Plane& plane,
                                        std::vector<UniqueFd>& descriptors);

private:
  struct Slot {
    explicit Slot(std::uint64_t first_generation) : generation(first_generation) {}
    std::uint64_t generation;
    std::shared_ptr<Plane> plane;  // null: free
    Token token{};
    bool token_spent = true;
  };
  StatusOr<Created> make(const Spec& spec, const std::function<bool()>& given_up) const;
  StatusOr<Created> make_on_gpu(const Spec& spec) const;
  [[nodiscard]] Status unknown(graph::PlaneId id) const;
  // Of a plane over bytes of another session.
  StatusOr<Plane::Costs> costs_of_opened() const;
  [[nodiscard]] StateKey key_of(std::uint64_t plane) const {
    return {record_.session, StateKind::plane, plane};
  }
  // An id for each, which nobody else gets meanwhile.
  Status number(std::vector<Created>& made);
  void number(Plane& plane);  // with the lock held
  Status write_down(std::span<const Created> made, bool moved = false);
  Status write_down_release(std::span<const graph::PlaneId> ids);
  void insert(const Created& created);
  StatusOr<Created> adopted(const std::string& label, const std::shared_ptr<PlaneBytes>& bytes,
                            bool read_only, const std::string& opened_from);
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
