// Slice: how long a piece of work may go on before somebody else has a turn.
//
// Whatever may take long looks at its slice every now and then and, once it is over, leaves what is left for
// the next piece. Where it stops depends on time; which bits come out does not.
#pragma once

#include <optional>

#include "engine/base/ticks.h"
#include "engine/run/control.h"

namespace eagle::run {

// What a piece takes, about. Two tenants that take turns wait so long for each other.
constexpr double usual_piece_s = 0.002;

class Slice {
public:
  // Never over.
  Slice() = default;
  // From now on. 0: over at once, so that everything is cut as finely as it can be; for tests.
  explicit Slice(double seconds) : begin_(ticks_now()), length_(ticks_of(seconds)), least_(seconds <= 0) {}

  // Over as well once somebody wants the work to stop. `control` may be null, else outlives it.
  void heed(const Control* control) { control_ = control; }

  [[nodiscard]] bool over() const {
    return time_is_over() || (control_ != nullptr && (control_->cancelled() || control_->expired()));
  }
  // Ticks that run backwards are over, too.
  [[nodiscard]] bool time_is_over() const { return length_ && (least_ || ticks_now() - begin_ >= *length_); }
  [[nodiscard]] Ticks began() const { return begin_; }
  // Pieces are to be as small as they can be.
  [[nodiscard]] bool least() const { return least_; }

private:
  Ticks begin_ = 0;
  std::optional<Ticks> length_;
  bool least_ = false;
  const Control* control_ = nullptr;
};

}  // namespace eagle::run
