#include "server/plane_store.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>
#include <utility>

#include "eagle/v1/state.pb.h"
#include "engine/graph/wire.h"
#include "engine/run/cuda/device_transfer.h"
#include "server/client_text.h"
#include "server/fault_point.h"
#include "server/secret.h"

namespace eagle::server {
namespace {

std::string_view text_of(const PlaneStore::Token& token) {
  return {reinterpret_cast<const char*>(token.data()), token.size()};
}

Status session_closed() {
  return {Reason::session_closed, "the session was closed while it made planes; open another one"};
}

Status check(std::span<const PlaneStore::Spec> specs, const Limits& limits) {
  if (specs.size() > limits.planes_per_request) {
    return {Reason::quota, "expected at most " + std::to_string(limits.planes_per_request) +
                               " planes in one request (planes_per_request), found " +
                               std::to_string(specs.size()) + "; make them in several requests"};
  }
  for (const PlaneStore::Spec& spec : specs) {
    if (spec.bytes == 0) return {Reason::bad_value, "a plane needs at least 1 byte, found 0"};
    EAGLE_RETURN_IF_ERROR(check_client_text("a plane label", spec.label, limits));
  }
  return {};
}

}  // namespace

PlaneBytes::~PlaneBytes() {
  if (left_ || gpu_) return;
  const auto bin = shared_ ? nullptr : bin_.lock();
  if (bin) {
    share_ = {};  // what is kept counts for nobody
    std::vector<ProcessRef> mapped_by;
    for (auto& [session, process] : fetchers_) mapped_by.push_back(std::move(process));
    bin->keep({std::move(charge_), std::move(memory_), plane_, std::move(mapped_by)});
  } else if (fetched_) {
    memory_.discard();
  }
}

void PlaneBytes::fetched_by(std::uint64_t session, const ProcessRef& process) {
  if (!process) return;
  const std::lock_guard lock(fetchers_mutex_);
  const auto known = std::pair(session, process);
  if (std::find(fetchers_.begin(), fetchers_.end(), known) != fetchers_.end()) return;
  // Of bytes that live long many processes come and go, and each is a descriptor.
  if (fetchers_.size() >= look_at_) {
    std::erase_if(fetchers_, [](const auto& fetcher) { return !fetcher.second->runs(); });
    look_at_ = std::max<std::size_t>(8, 2 * fetchers_.size());
  }
  fetchers_.push_back(known);
}

std::size_t PlaneBytes::opened_by() const {
  const std::lock_guard lock(fetchers_mutex_);
  return static_cast<std::size_t>(std::count_if(fetchers_.begin(), fetchers_.end(),
                                                [](const auto& known) { return known.second->runs(); }));
}

Status PlaneBytes::read(const plane::Packed& packed, std::uint64_t first, std::span<std::byte> into) const {
  if (gpu_) return run::cuda::read_packed(gpu_->memory(), packed, first, into);
  packed.read(data_, first, into);
  return {};
}

Status PlaneBytes::write(const plane::Packed& packed, std::uint64_t first,
                         std::span<const std::byte> from) const {
  if (gpu_) return run::cuda::write_packed(gpu_->memory(), packed, first, from);
  packed.write(data_, first, from);
  return {};
}

StatusOr<run::cuda::DeviceHandle> PlaneBytes::device_handle() const {
  if (gpu_) return gpu_->memory().handle();
  return Status(Reason::bad_value, "the plane is in memory of the host; its descriptor is to be fetched");
}

bool PlaneBytes::mapped_by(std::uint64_t session) const {
  const std::lock_guard lock(fetchers_mutex_);
  return std::any_of(fetchers_.begin(), fetchers_.end(),
                     [&](const auto& known) { return known.first == session && known.second->runs(); });
}

void PlaneBytes::add_place(StateLog* log, const StateKey& plane) {
  if (log == nullptr || gpu_) return;
  const std::lock_guard lock(places_mutex_);
  log_ = log;
  places_.insert({plane.session, StateKind::torn, plane.id});
}

void PlaneBytes::remove_place(const StateKey& plane) {
  const std::lock_guard lock(places_mutex_);
  places_.erase({plane.session, StateKind::torn, plane.id});
}

Status PlaneBytes::write_down_torn() {
  const std::lock_guard lock(places_mutex_);
  if (places_.empty() || (!torn_written_ && !torn_.any())) return {};
  v1::TornRecord record;
  for (const plane::TornViews::Mark& mark : torn_.marks()) {
    v1::TornRecord::Mark& message = *record.add_marks();
    graph::to_message(mark.view, *message.mutable_view());
    message.set_what(mark.what);
  }
  std::vector<StateChange> changes;
  for (const StateKey& place : places_) {
    StateChange& change = changes.emplace_back();
    change.key = place;
    change.gone = record.marks().empty();
    if (!change.gone) change.value = record.SerializeAsString();
  }
  fault_point("torn.before");
  EAGLE_RETURN_IF_ERROR(log_->write(changes));
  fault_point("torn.after");
  torn_written_ = !record.marks().empty();
  return {};
}

void Plane::mark_torn(std::uint64_t offset, std::uint64_t bytes, std::string what) {
  torn().mark({0,
               static_cast<std::int64_t>(offset),
               plane::DType::boolean,
               1,
               {static_cast<std::int64_t>(bytes)},
               {1}},
              std::move(what));
}

StatusOr<UniqueFd> PlaneBytes::descriptor(bool read_only) const {
  const std::lock_guard lock(mutex_);
  UniqueFd fd(read_only
                  ? ::open(("/proc/self/fd/" + std::to_string(memory_.fd())).c_str(), O_RDONLY | O_CLOEXEC)
                  : ::fcntl(memory_.fd(), F_DUPFD_CLOEXEC, 0));
  if (!fd.valid()) {
    return Status(Reason::system, std::string("a descriptor of a plane: ") + std::strerror(errno));
  }
  return fd;
}

std::vector<const PlaneBytes*> bytes_of(std::span<Plane* const> planes) {
  std::vector<const PlaneBytes*> bytes;
  bytes.reserve(planes.size());
  for (Plane* const plane : planes) bytes.push_back(plane == nullptr ? nullptr : plane->bytes().get());
  return bytes;
}

Status unknown_plane(graph::PlaneId id) {
  return {Reason::unknown_plane, "no plane " + std::to_string(id.id) + " of generation " +
                                     std::to_string(id.generation) +
                                     " in this session: it was released, or never made"};
}

StatusOr<std::vector<PlaneStore::Created>> PlaneStore::create(std::span<const Spec> specs,
                                                              const std::function<bool()>& given_up) {
  EAGLE_RETURN_IF_ERROR(check(specs, limits_));
  std::vector<Created> made;
  made.reserve(specs.size());
  for (const Spec& spec : specs) {
    EAGLE_ASSIGN_OR_RETURN(Created created, make(spec, given_up));
    made.push_back(std::move(created));
  }
  EAGLE_RETURN_IF_ERROR(number(made));
  const Status written = write_down(made);
  const std::lock_guard lock(mutex_);
  if (closed_) return session_closed();
  for (const Created& created : made) {
    if (written.ok())
      insert(created);
    else
      free_.push_back(created.plane->id().id);
  }
  if (!written.ok()) return written;
  return made;
}

StatusOr<PlaneStore::Created> PlaneStore::make(const Spec& spec,
                                               const std::function<bool()>& given_up) const {
  Tenant::Share share;
  Plane::Costs costs;
  if (spec.gpu) return make_on_gpu(spec);
  if (tenant_) {
    EAGLE_ASSIGN_OR_RETURN(share, tenant_->hold(Held::plane_bytes, PlaneBudget::whole_pages(spec.bytes)));
    EAGLE_ASSIGN_OR_RETURN(costs.share, tenant_->hold(Held::planes));
  }
  std::shared_ptr<RecycledMemory::Bin> bin;
  {
    const std::lock_guard lock(mutex_);
    bin = bin_;
  }
  Created created;
  EAGLE_RETURN_IF_ERROR(fill_random(created.token));
  EAGLE_ASSIGN_OR_RETURN(const std::uint64_t id, random_id());
  std::shared_ptr<PlaneBytes> bytes;
  const bool huge = spec.pages == plane::Memory::PageSize::huge;
  if (auto piece = bin && !huge ? bin->take(spec.bytes) : std::nullopt) {
    if (spec.may_be_uncleared) created.recycled = piece->plane();
    bytes =
        std::make_shared<PlaneBytes>(piece->take_memory(), piece->take_charge(), std::move(share), bin, id);
    bytes->mark_fetched();  // as the plane was that it had been
    for (const ProcessRef& process : piece->mapped_by()) bytes->fetched_by(record_.session, process);
    if (!spec.may_be_uncleared) std::memset(bytes->data(), 0, bytes->size());
  } else {
    EAGLE_ASSIGN_OR_RETURN(PlaneBudget::Charge charge, budget_.charge(spec.bytes));
    auto memory = plane::Memory::create(spec.bytes, spec.label, given_up, spec.pages);
    // The system may be out of descriptors or memory of which some is kept here for later.
    while (!memory.ok() && memory.status().reason() != Reason::cancelled &&
           budget_.recycled().give_back_oldest()) {
      memory = plane::Memory::create(spec.bytes, spec.label, given_up, spec.pages);
    }
    if (!memory.ok()) return memory.status();
    bytes = std::make_shared<PlaneBytes>(std::move(*memory), std::move(charge), std::move(share), bin, id);
    if (huge) bytes->set_huge_pages(plane::huge_pages_of(bytes->data(), bytes->size()));
  }
  created.plane = std::make_shared<Plane>(spec.label, std::move(bytes), Plane::Access::own, std::string(),
                                          std::move(costs));
  return created;
}

StatusOr<PlaneStore::Created> PlaneStore::make_on_gpu(const Spec& spec) const {
  Tenant::Share share;
  if (tenant_ && !spec.imported) {
    EAGLE_ASSIGN_OR_RETURN(share, tenant_->hold(Held::gpu_bytes, run::cuda::shared_bytes_of(spec.bytes)));
  }
  EAGLE_ASSIGN_OR_RETURN(Plane::Costs costs, costs_of_opened());
  Created created;
  EAGLE_RETURN_IF_ERROR(fill_random(created.token));
  EAGLE_ASSIGN_OR_RETURN(const std::uint64_t id, random_id());
  EAGLE_ASSIGN_OR_RETURN(const auto memory, spec.gpu());
  const auto make_bytes = [&] { return std::make_shared<PlaneBytes>(memory, std::move(share), id); };
  created.plane =
      std::make_shared<Plane>(spec.label, spec.imported ? memory->shared_bytes(make_bytes) : make_bytes(),
                              Plane::Access::own, std::string(), std::move(costs));
  return created;
}

StatusOr<Plane::Costs> PlaneStore::costs_of_opened() const {
  Plane::Costs costs;
  if (tenant_) {
    EAGLE_ASSIGN_OR_RETURN(costs.share, tenant_->hold(Held::planes));
  }
  EAGLE_ASSIGN_OR_RETURN(costs.charge, budget_.charge_for("the entry of an array", entry_bytes));
  return costs;
}

Status PlaneStore::number(std::vector<Created>& made) {
  const std::lock_guard lock(mutex_);
  if (closed_) return session_closed();
  for (Created& created : made) {
    number(*created.plane);
    created.plane->bytes_->set_plane(created.plane->id_);
  }
  return {};
}

void PlaneStore::number(Plane& plane) {
  if (free_.empty()) {
    slots_.emplace_back(record_.first_generation);
    free_.push_back(slots_.size());
  }
  const std::uint64_t id = free_.back();
  free_.pop_back();
  std::uint64_t& generation = slots_[id - 1].generation;
  generation = std::max(generation, record_.first_generation) + 1;
  plane.id_ = {id, generation};
}

StatusOr<StateChange> PlaneStore::entry_of(std::uint64_t session, const Plane& plane,
                                           std::vector<UniqueFd>& descriptors) {
  v1::PlaneRecord record;
  record.set_generation(plane.id().generation);
  record.set_bytes(plane.size());
  record.set_label(plane.label());
  record.set_bytes_id(plane.bytes()->id());
  record.set_access(plane.read_only() ? 2 : plane.granted() ? 1 : 0);
  record.set_owner(plane.opened_from());
  record.set_huge_bytes(plane.bytes()->huge_pages().bytes);
  record.set_huge_why(plane.bytes()->huge_pages().why);
  StateChange change;
  change.key = {session, StateKind::plane, plane.id().id};
  change.value = record.SerializeAsString();
  EAGLE_ASSIGN_OR_RETURN(UniqueFd descriptor, plane.bytes()->descriptor(false));
  change.fd = descriptors.emplace_back(std::move(descriptor)).get();
  return change;
}

// Without the lock: launches look planes up meanwhile.
Status PlaneStore::write_down(std::span<const Created> made, bool moved) {
  if (record_.log == nullptr) return {};
  std::vector<StateChange> changes;
  std::vector<UniqueFd> descriptors;
  for (const Created& created : made) {
    if (created.plane->gpu() != nullptr) continue;  // it goes with this process
    EAGLE_ASSIGN_OR_RETURN(StateChange change, entry_of(record_.session, *created.plane, descriptors));
    change.moved = moved;
    changes.push_back(std::move(change));
  }
  if (changes.empty()) return {};
  fault_point("plane.create.before");
  EAGLE_RETURN_IF_ERROR(record_.log->write(changes));
  fault_point("plane.create.after");
  return {};
}

void PlaneStore::insert(const Created& created) {
  const std::uint64_t id = created.plane->id().id;
  Slot& slot = slots_[id - 1];
  slot.plane = created.plane;
  slot.token = created.token;
  slot.token_spent = false;
  tokens_.emplace(text_of(created.token), id);
  created.plane->bytes()->add_place(record_.log, key_of(id));
}

// Marks of the same bytes are the same wherever they are written down: the first record says it all.
Status PlaneStore::restore_torn(std::uint64_t plane, const std::string& text) {
  v1::TornRecord record;
  const std::lock_guard lock(mutex_);
  if (!record.ParseFromString(text) || plane == 0 || plane > slots_.size() || !slots_[plane - 1].plane) {
    return {Reason::bad_message, "a record of half written arrays of a plane that is not there"};
  }
  Plane& torn = *slots_[plane - 1].plane;
  const bool known = torn.torn().any();
  for (const v1::TornRecord::Mark& mark : record.marks()) {
    plane::View view = graph::unchecked_view(mark.view());
    view.plane = 0;
    EAGLE_RETURN_IF_ERROR(plane::check(view, torn.size()));
    if (!known) torn.torn().mark(std::move(view), mark.what());
  }
  torn.bytes()->note_torn_written();
  return {};
}

Status PlaneStore::restore(std::uint64_t id, const v1::PlaneRecord& record,
                           std::shared_ptr<PlaneBytes> bytes) {
  constexpr std::uint64_t most_ids = 1u << 20;
  if (id == 0 || id > most_ids || record.access() > 2) {
    return {Reason::bad_message, "plane " + std::to_string(id) + " cannot have been made"};
  }
  constexpr std::array accesses = {Plane::Access::own, Plane::Access::granted,
                                   Plane::Access::granted_for_reading};
  const Plane::Access access = accesses[record.access()];
  // It is there already, whatever the tenant's quota says by now.
  if (tenant_ && access == Plane::Access::own) {
    auto held = tenant_->hold(Held::plane_bytes, PlaneBudget::whole_pages(bytes->size()));
    if (held.ok()) bytes->count_for(*std::move(held));
  }
  Plane::Costs costs;
  if (access != Plane::Access::own) costs.charge = budget_.adopt_other(entry_bytes);
  if (tenant_) {
    if (auto held = tenant_->hold(Held::planes); held.ok()) costs.share = *std::move(held);
  }
  bytes->mark_fetched();  // for all that is known here
  bytes->set_huge_pages({record.huge_bytes(), record.huge_why()});
  if (access != Plane::Access::own) bytes->mark_shared();
  bytes->set_plane({id, record.generation()});
  auto plane = std::make_shared<Plane>(record.label(), bytes, access, record.owner(), std::move(costs));
  plane->id_ = {id, record.generation()};
  const std::lock_guard lock(mutex_);
  if (id <= slots_.size()) {
    return {Reason::bad_message, "plane " + std::to_string(id) + " comes out of order"};
  }
  while (slots_.size() + 1 < id) {
    slots_.emplace_back(record_.first_generation);
    free_.push_back(slots_.size());
  }
  Slot& slot = slots_.emplace_back(record_.first_generation);
  slot.generation = record.generation();
  slot.plane = std::move(plane);
  bytes->add_place(record_.log, key_of(id));
  return {};
}

StatusOr<PlaneStore::Created> PlaneStore::renewed(Slot& slot) {
  Token token{};
  EAGLE_RETURN_IF_ERROR(fill_random(token));
  if (!slot.token_spent) tokens_.erase(tokens_.find(text_of(slot.token)));
  slot.token = token;
  slot.token_spent = false;
  tokens_.emplace(text_of(token), slot.plane->id_.id);
  return Created{slot.plane, token};
}

StatusOr<PlaneStore::Created> PlaneStore::adopt(const std::string& label,
                                                const std::shared_ptr<PlaneBytes>& bytes, bool read_only,
                                                const std::string& opened_from) {
  Created created;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return session_closed();
    EAGLE_ASSIGN_OR_RETURN(created, adopted(label, bytes, read_only, opened_from));
  }
  EAGLE_RETURN_IF_ERROR(write_down({&created, 1}));
  return created;
}

// With the lock held.
StatusOr<PlaneStore::Created> PlaneStore::adopted(const std::string& label,
                                                  const std::shared_ptr<PlaneBytes>& bytes, bool read_only,
                                                  const std::string& opened_from) {
  for (Slot& slot : slots_) {
    if (!slot.plane || slot.plane->bytes_ != bytes) continue;
    if (!read_only && slot.plane->read_only()) {
      slot.plane->access_.store(Plane::Access::granted, std::memory_order_release);
    }
    return renewed(slot);
  }
  if (slots_.size() - free_.size() >= limits_.planes) {
    return Status(Reason::quota, "the session holds " + std::to_string(limits_.planes) +
                                     " planes, which is the limit (planes); release some");
  }
  EAGLE_ASSIGN_OR_RETURN(Plane::Costs costs, costs_of_opened());
  bytes->mark_shared();
  Created created;
  created.plane = std::make_shared<Plane>(
      label, bytes, read_only ? Plane::Access::granted_for_reading : Plane::Access::granted, opened_from,
      std::move(costs));
  EAGLE_RETURN_IF_ERROR(fill_random(created.token));
  number(*created.plane);
  insert(created);
  return created;
}

StatusOr<PlaneStore::Created> PlaneStore::renew(graph::PlaneId id) {
  const std::lock_guard lock(mutex_);
  if (slot_of(id) == nullptr) return unknown(id);
  return renewed(slots_[id.id - 1]);
}

Status PlaneStore::note_moved(const PlaneBytes& bytes) {
  std::vector<Created> moved;
  for (const auto& plane : list()) {
    if (plane->bytes().get() == &bytes) moved.push_back({plane, {}});
  }
  return moved.empty() ? Status() : write_down(moved, true);
}

Status PlaneStore::unknown(graph::PlaneId id) const {
  if (id.generation > record_.first_generation || record_.first_generation == 0) return unknown_plane(id);
  return {Reason::unknown_plane, unknown_plane(id).message() +
                                     "; it was of a worker that has died, and what lies in a GPU's memory is "
                                     "lost with its worker: make the array again"};
}

const PlaneStore::Slot* PlaneStore::slot_of(graph::PlaneId id) const {
  if (id.id == 0 || id.id > slots_.size()) return nullptr;
  const Slot& slot = slots_[id.id - 1];
  return slot.plane && slot.generation == id.generation ? &slot : nullptr;
}

StatusOr<std::shared_ptr<Plane>> PlaneStore::find(graph::PlaneId id) const {
  const std::lock_guard lock(mutex_);
  const Slot* const slot = slot_of(id);
  if (slot == nullptr) return unknown(id);
  return slot->plane;
}

Status PlaneStore::accept(graph::PlaneId id, const plane::View& view) const {
  EAGLE_ASSIGN_OR_RETURN(const auto found, find(id));
  EAGLE_RETURN_IF_ERROR(plane::check(view, found->size()));
  if (found->torn().accept(view) > 0) EAGLE_RETURN_IF_ERROR(found->bytes()->write_down_torn());
  return {};
}

std::uint64_t PlaneStore::bytes_of(std::span<const graph::PlaneId> ids) const {
  std::uint64_t bytes = 0;
  const std::lock_guard lock(mutex_);
  for (const graph::PlaneId id : ids) {
    if (const Slot* const slot = slot_of(id)) bytes += slot->plane->size();
  }
  return bytes;
}

// Out of the table first: an id is used again only once it is written down that it is free.
Status PlaneStore::release(std::span<const graph::PlaneId> ids) {
  Planes gone;  // freed after the lock: unmapping takes its time
  {
    const std::lock_guard lock(mutex_);
    std::set<std::uint64_t> named;
    for (const graph::PlaneId id : ids) {
      if (slot_of(id) == nullptr || !named.insert(id.id).second) return unknown(id);
    }
    gone.reserve(ids.size());
    for (const graph::PlaneId id : ids) {
      Slot& slot = slots_[id.id - 1];
      slot.plane->released_.store(true, std::memory_order_release);
      slot.plane->bytes()->remove_place(key_of(id.id));
      if (!slot.token_spent) tokens_.erase(tokens_.find(text_of(slot.token)));
      slot.token_spent = true;
      gone.push_back(std::move(slot.plane));
      slot.plane.reset();
    }
  }
  const Status written = write_down_release(ids);
  const std::lock_guard lock(mutex_);
  if (!closed_) {
    for (const graph::PlaneId id : ids) free_.push_back(id.id);
  }
  return written;
}

void PlaneStore::release_imports() {
  for (const auto& plane : list()) {
    const graph::PlaneId id = plane->id();
    if (plane->gpu() != nullptr && plane->gpu()->imported()) static_cast<void>(release({&id, 1}));
  }
}

Status PlaneStore::write_down_release(std::span<const graph::PlaneId> ids) {
  if (record_.log == nullptr || ids.empty()) return {};
  std::vector<StateChange> changes;
  for (const graph::PlaneId id : ids) {
    for (const StateKind kind : {StateKind::plane, StateKind::torn}) {
      StateChange& change = changes.emplace_back();
      change.key = {record_.session, kind, id.id};
      change.gone = true;
    }
  }
  fault_point("plane.release.before");
  EAGLE_RETURN_IF_ERROR(record_.log->write(changes));
  fault_point("plane.release.after");
  return {};
}

PlaneStore::Planes PlaneStore::list() const {
  Planes planes;
  const std::lock_guard lock(mutex_);
  for (const Slot& slot : slots_) {
    if (slot.plane) planes.push_back(slot.plane);
  }
  return planes;
}

StatusOr<PlaneStore::Planes> PlaneStore::redeemable(std::span<const std::string_view> tokens,
                                                    const ProcessRef& process) const {
  Planes planes;
  std::set<std::string_view> named;
  const std::lock_guard lock(mutex_);
  for (const std::string_view token : tokens) {
    const auto found = tokens_.find(token);
    if (found == tokens_.end() || !named.insert(token).second) {
      return Status(Reason::unknown_plane,
                    "token " + std::to_string(planes.size()) + " of " + std::to_string(tokens.size()) +
                        " stands for no plane of this session: it was spent, or the plane released; a token "
                        "is good for one descriptor");
    }
    planes.push_back(slots_[found->second - 1].plane);
  }
  // Before the descriptors leave, so that no release in between takes the plane for one never seen outside.
  for (const auto& plane : planes) {
    plane->bytes_->mark_fetched();
    plane->bytes_->fetched_by(record_.session, process);
  }
  return planes;
}

void PlaneStore::spend(std::span<const std::string_view> tokens) {
  const std::lock_guard lock(mutex_);
  for (const std::string_view token : tokens) {
    const auto found = tokens_.find(token);
    if (found == tokens_.end()) continue;  // released meanwhile
    slots_[found->second - 1].token_spent = true;
    tokens_.erase(found);
  }
}

PlaneStore::Planes PlaneStore::close() {
  Planes planes;
  std::shared_ptr<RecycledMemory::Bin> bin;  // frees what it keeps after the lock
  const std::lock_guard lock(mutex_);
  closed_ = true;
  bin.swap(bin_);
  for (Slot& slot : slots_) {
    if (!slot.plane) continue;
    slot.plane->released_.store(true, std::memory_order_release);
    slot.plane->bytes()->remove_place(key_of(slot.plane->id_.id));
    planes.push_back(std::move(slot.plane));
  }
  slots_.clear();
  free_.clear();
  tokens_.clear();
  return planes;
}

}  // namespace eagle::server
