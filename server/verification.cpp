#include "server/verification.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "eagle/v1/graph.pb.h"
#include "eagle/v1/state.pb.h"
#include "engine/run/cpu/slice.h"
#include "server/graph_records.h"
#include "server/scratch_memory.h"
#include "server/session.h"

namespace eagle::server {
namespace {

constexpr std::uint64_t step_bytes = 4u << 20;

// What reads all of these planes.
std::shared_ptr<const Footprint> footprint_of_reading(const std::vector<std::shared_ptr<Plane>>& planes) {
  graph::Touches touches;
  std::vector<const PlaneBytes*> bytes;
  for (const auto& plane : planes) {
    plane::View all;
    all.plane = static_cast<std::uint32_t>(bytes.size());
    all.dtype = plane::DType::boolean;
    all.item_bytes = 1;
    all.shape = {static_cast<std::int64_t>(plane->size())};
    all.strides = {1};
    touches.reads.push_back({plane->label(), std::move(all)});
    bytes.push_back(plane->bytes().get());
  }
  return Footprint::of({&touches, 1}, bytes);
}

}  // namespace

// One stretch of work on the executor's thread.
class Verification::Turns final : public Job {
public:
  using Turn = StatusOr<bool> (Verification::*)();
  using After = void (Verification::*)();
  Turns(std::shared_ptr<Verification> of, Turn turn, After after)
      : of_(std::move(of)), turn_(turn), after_(after) {}
  Next advance() override {
    const Status stopped = of_->stopped();
    const StatusOr<bool> over = stopped.ok() ? ((*of_).*turn_)() : StatusOr<bool>(stopped);
    if (over.ok() && !*over) return Next::again;
    ends_with(over.status().code());
    of_->payer_->leave(this);
    if (over.ok()) {
      ((*of_).*after_)();
    } else {
      of_->finish(over.status());
    }
    return Next::done;
  }
  void cancel() override { of_->cancel(); }

private:
  const std::shared_ptr<Verification> of_;
  const Turn turn_;
  const After after_;
};

Verification::Verification(Token /*token*/, Daemon& daemon, std::shared_ptr<Session> owner,
                           std::shared_ptr<Session> payer, VerifyAsked asked, Done done)
    : daemon_(daemon),
      owner_(std::move(owner)),
      payer_(std::move(payer)),
      asked_(std::move(asked)),
      done_(std::move(done)),
      counted_(daemon.underway().enter()) {
  control_->deadline = asked_.deadline;
}

Verification::~Verification() = default;

std::shared_ptr<Verification> Verification::make(Daemon& daemon, std::shared_ptr<Session> owner,
                                                 std::shared_ptr<Session> payer, VerifyAsked asked,
                                                 Done done) {
  return std::make_shared<Verification>(Token(), daemon, std::move(owner), std::move(payer), std::move(asked),
                                        std::move(done));
}

void Verification::begin() {
  if (const Status prepared = prepare(); !prepared.ok()) finish(prepared);
}

Status Verification::prepare() {
  if (asked_.launches < 0) {
    return {Reason::bad_value,
            "expected a launch count of at least 0, found " + std::to_string(asked_.launches)};
  }
  EAGLE_ASSIGN_OR_RETURN(const std::shared_ptr<LoadedGraph> graph, daemon_.graph(*owner_, asked_.graph));
  EAGLE_RETURN_IF_ERROR(graph->check_planes());
  EAGLE_ASSIGN_OR_RETURN(const GraphRecords::Record record, owner_->records().find(asked_.graph));
  const v1::GraphDescription& description = record.graph->description();
  const std::string& tenant = owner_->tenant()->name();
  hash_ = hash_of(description, tenant);
  EAGLE_RETURN_IF_ERROR(daemon_.quarantine().check(hash_, tenant, description.name()));
  EAGLE_RETURN_IF_ERROR(payer_->tenant()->may_compile());
  backend_ = graph->built().backend();
  EAGLE_ASSIGN_OR_RETURN(ResolvedPlanes planes, resolve(description, owner_->planes()));
  EAGLE_ASSIGN_OR_RETURN(const auto there, planes.on_device());
  if (there && asked_.device.empty()) {
    unit_ = there->unit;
  } else {
    EAGLE_ASSIGN_OR_RETURN(unit_, daemon_.gpus().find(asked_.device.empty() ? "cuda" : asked_.device));
  }
  EAGLE_RETURN_IF_ERROR(copy_planes(description, planes.planes));

  std::vector<run::PlaneMemory> memory;
  auto next = copies_.begin();
  for (const v1::PlaneDeclaration& declared : description.planes()) {
    if (declared.has_plane()) {
      memory.push_back({next->to.get(), next->bytes});
      ++next;
    } else {
      memory.push_back({nullptr, declared.bytes()});
    }
  }
  DifferentialReplay::Asked replay;
  EAGLE_ASSIGN_OR_RETURN(replay.params, updates_of(*record.params));
  replay.count = asked_.launches;
  replay.control = control_;
  EAGLE_ASSIGN_OR_RETURN(
      replay_, DifferentialReplay::create(daemon_.engine(), description, std::move(replay), memory, unit_,
                                          scratch_memory(daemon_.budget(), *payer_),
                                          account_on(daemon_.gpus(), unit_, *payer_),
                                          [this] { return !stopped().ok() || payer_->ended(); }));
  payer_->tenant()->note_compiled(replay_->on_cpu().build_s() + replay_->on_gpu().build_s());
  return queue(
      std::make_shared<Turns>(shared_from_this(), &Verification::copy_some, &Verification::after_copying),
      footprint_of_reading(planes.planes));
}

// Makes room; what is in them is copied once it is their turn.
Status Verification::copy_planes(const v1::GraphDescription& description, const PlaneStore::Planes& planes) {
  const Engine::MakeScratch make = scratch_memory(daemon_.budget(), *payer_);
  std::uint64_t on_device = 0;
  auto next = planes.begin();
  for (const v1::PlaneDeclaration& declared : description.planes()) {
    if (!declared.has_plane()) continue;
    Copy copy;
    copy.from = *next++;
    copy.bytes = declared.bytes();
    EAGLE_ASSIGN_OR_RETURN(copy.to, make(copy.bytes));
    on_device += copy.bytes;
    copies_.push_back(std::move(copy));
  }
  EAGLE_ASSIGN_OR_RETURN(on_device_,
                         account_on(daemon_.gpus(), unit_, *payer_)(on_device, "copies of planes"));
  return {};
}

Status Verification::queue(std::shared_ptr<Turns> turns, std::shared_ptr<const Footprint> footprint) {
  {
    const std::lock_guard lock(mutex_);
    turns_ = turns;
  }
  EAGLE_RETURN_IF_ERROR(payer_->enter(turns, 0));
  const Status queued = daemon_.executor().submit(
      turns, {payer_->tenant(), {payer_->id(), asked_.graph}, std::move(footprint), WorkKind::other});
  if (!queued.ok()) {
    payer_->leave(turns.get());
    return queued;
  }
  if (control_->cancelled()) daemon_.executor().expedite(turns);
  return {};
}

// Whoever writes these planes waits meanwhile, and no longer.
StatusOr<bool> Verification::copy_some() {
  const run::Slice slice(run::usual_piece_s);
  for (; copied_ < copies_.size(); ++copied_, copied_bytes_ = 0) {
    const Copy& copy = copies_[copied_];
    while (copied_bytes_ < copy.bytes) {
      const std::uint64_t count = std::min(step_bytes, copy.bytes - copied_bytes_);
      if (copy.from->gpu() != nullptr) {
        EAGLE_RETURN_IF_ERROR(
            copy.from->gpu()->memory().read({copy.to.get() + copied_bytes_, count}, copied_bytes_));
      } else {
        std::memcpy(copy.to.get() + copied_bytes_, copy.from->data() + copied_bytes_, count);
      }
      copied_bytes_ += count;
      if (slice.over()) return false;
    }
  }
  return true;
}

void Verification::after_copying() {
  if (owner_->ledger() != nullptr) line_ = owner_->ledger()->note(owner_->id(), hash_, {});
  const Status queued = queue(
      std::make_shared<Turns>(shared_from_this(), &Verification::replay_some, &Verification::after_replaying),
      nullptr);
  if (!queued.ok()) finish(queued);
}

StatusOr<bool> Verification::replay_some() {
  line_.computes(true);
  auto over = replay_->advance();
  line_.computes(false);
  return over;
}

void Verification::after_replaying() {
  line_.cross_out();
  const Status queued = daemon_.build_pool().submit(
      [self = shared_from_this()] { self->finish(self->compared()); }, payer_->tenant()->name());
  if (!queued.ok()) finish(queued);
}

StatusOr<Verified> Verification::compared() const {
  Verified verified;
  EAGLE_ASSIGN_OR_RETURN(verified.difference, replay_->compare());
  verified.device = unit_->name();
  verified.gpu = text_of(unit_->info());
  verified.backend = backend_;
  verified.schedule = replay_->on_gpu().schedule();
  verified.nodes = replay_->on_cpu().node_labels().size();
  verified.planes = copies_.size();
  for (const Copy& copy : copies_) verified.bytes += copy.bytes;
  return verified;
}

void Verification::cancel() {
  control_->cancel.store(true);
  std::shared_ptr<Turns> turns;
  {
    const std::lock_guard lock(mutex_);
    turns = turns_;
  }
  if (turns) daemon_.executor().expedite(turns);
}

Status Verification::stopped() const {
  if (control_->cancelled()) return {Reason::cancelled, "verify was cancelled"};
  if (control_->expired()) return {Reason::deadline, "the deadline of verify passed"};
  return {};
}

void Verification::finish(const StatusOr<Verified>& outcome) {
  line_.cross_out();
  {
    const std::lock_guard lock(mutex_);
    turns_.reset();
  }
  replay_.reset();
  const Done done = std::exchange(done_, nullptr);
  if (done) done(outcome);
  counted_.reset();
}

}  // namespace eagle::server
