// Taking an array back from those whom it was granted to.
#include <fcntl.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "engine/run/cpu/slice.h"
#include "server/daemon.h"
#include "server/fault_point.h"

namespace eagle::server {
namespace {

// Moves bytes on the executor's thread, a piece at a time. Its footprint keeps whatever else stores there
// away.
class SealOff final : public Job {
public:
  // `note_moved` writes down where the bytes are. `old`: the file that they leave.
  SealOff(std::shared_ptr<PlaneBytes> bytes, plane::Memory::Move move, UniqueFd old,
          PlaneBudget::Charge twice, std::function<Status(const PlaneBytes&)> note_moved,
          std::function<void(const Status&)> done)
      : bytes_(std::move(bytes)),
        move_(std::move(move)),
        old_(std::move(old)),
        twice_(std::move(twice)),
        note_moved_(std::move(note_moved)),
        done_(std::move(done)) {}
  Next advance() override {
    const run::Slice slice(run::usual_piece_s);
    do {
      const StatusOr<bool> over = step();
      if (over.ok() && !*over) continue;
      done_(over.status());
      return Next::done;
    } while (!slice.over());
    return Next::again;
  }
  void cancel() override {}  // what its owner wants is that others see the bytes no more

private:
  static constexpr std::uint64_t step_bytes = 4u << 20;

  // Mapped, written down, and only then emptied: whenever this process dies, what the next one is given has
  // the bytes. Whether all is done.
  StatusOr<bool> step() {
    if (move_) {
      if (!move_->copy(step_bytes)) return false;
      EAGLE_RETURN_IF_ERROR(bytes_->finish_move(*std::exchange(move_, std::nullopt)));
      fault_point("seal_off.mapped");
      EAGLE_RETURN_IF_ERROR(note_moved_(*bytes_));
      fault_point("seal_off.written");
      return false;
    }
    const std::uint64_t bytes = std::min(step_bytes, bytes_->size() - emptied_);
    if (::fallocate(old_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(emptied_),
                    static_cast<off_t>(bytes)) != 0)
      return Status(Reason::system, std::string("emptying a memfd failed: ") + std::strerror(errno));
    emptied_ += bytes;
    if (emptied_ < bytes_->size()) return false;
    fault_point("seal_off.emptied");
    return true;
  }

  const std::shared_ptr<PlaneBytes> bytes_;
  std::optional<plane::Memory::Move> move_;  // until all is copied
  const UniqueFd old_;
  std::uint64_t emptied_ = 0;
  const PlaneBudget::Charge twice_;
  const std::function<Status(const PlaneBytes&)> note_moved_;
  const std::function<void(const Status&)> done_;
};

// What stores in all of these bytes.
std::shared_ptr<const Footprint> footprint_of_all(const PlaneBytes& bytes, const std::string& label) {
  graph::Touches touches;
  plane::View all;
  all.dtype = plane::DType::boolean;
  all.item_bytes = 1;
  all.shape = {static_cast<std::int64_t>(bytes.size())};
  all.strides = {1};
  touches.writes.push_back({label, std::move(all)});
  const PlaneBytes* const plane = &bytes;
  return Footprint::of({&touches, 1}, {&plane, 1});
}

}  // namespace

StatusOr<std::shared_ptr<PlaneBytes>> Daemon::withdraw(const Session& owner, const std::string& name,
                                                       const std::set<std::string>& from) {
  EAGLE_ASSIGN_OR_RETURN(Published::Withdrawn withdrawn, published_.withdraw(owner, name, from));
  // Else one that waits for its own client would keep the owner waiting, for as long as it likes.
  executor_.stop_those_over(
      *footprint_of_all(*withdrawn.bytes, name), withdrawn.sessions,
      {Reason::cancelled, "an array that it touches was withdrawn by its owner, who had published it"});
  return std::move(withdrawn.bytes);
}

void Daemon::seal_off(const std::shared_ptr<Session>& session, const std::shared_ptr<PlaneBytes>& bytes,
                      const std::string& label, const std::function<void(const Status&)>& done) {
  const auto begin = [this, session, bytes, label, done]() -> Status {
    EAGLE_ASSIGN_OR_RETURN(PlaneBudget::Charge twice, budget_->charge(bytes->size()));
    EAGLE_ASSIGN_OR_RETURN(UniqueFd old, bytes->descriptor(false));
    EAGLE_ASSIGN_OR_RETURN(plane::Memory::Move move, bytes->begin_move(label));
    const auto job = std::make_shared<SealOff>(
        bytes, std::move(move), std::move(old), std::move(twice),
        [this](const PlaneBytes& moved) { return note_moved(moved); }, done);
    return executor_.submit(
        job, {session->tenant(), {session->id()}, footprint_of_all(*bytes, label), WorkKind::other});
  };
  const Status queued =
      memory_pool(bytes->size()).submit([begin, done, counted = underway_.enter()]() mutable {
        if (const Status begun = begin(); !begun.ok()) done(begun);
        counted.reset();  // from here on it is a job, or has ended
      });
  if (!queued.ok()) done(queued);
}

}  // namespace eagle::server
