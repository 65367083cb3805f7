// The forward derivative of a kernel: its signature, and the step of a sample that runs or is stopped.
#include <utility>

#include "engine/kernel/copier.h"
#include "engine/kernel/diff/forward.h"
#include "engine/kernel/diff/plain.h"
#include "engine/kernel/diff/request.h"

namespace eagle::kernel::diff {
namespace {

class Jvp {
public:
  Jvp(const Kernel& kernel, const Options& options, Request request)
      : kernel_(kernel),
        options_(options),
        request_(std::move(request)),
        entries_(entries_of(kernel)),
        activity_(kernel, request_.wrt),
        w_(kernel),
        primal_(kernel, w_, false),
        signature_(kernel, primal_, w_),
        places_(kernel.arguments.size(), no_place) {}

  StatusOr<Derivative> make() {
    signature_.declare_inputs();
    for (std::size_t a = 0; a < kernel_.arguments.size(); ++a) {
      if (!is_real(argument(a).type.scalar)) continue;
      if (const Role role = role_of_dot(a); role != Role::terminated) {
        const bool axes = is_indexed(argument(a).role);
        places_[a] = signature_.declare(Part::dot, a, role, argument(a).type,
                                        axes ? argument(a).axes : std::vector<Axis>{});
      }
    }
    if (options_.step_param && asks_for_step(kernel_.body)) signature_.declare_step();
    std::vector<ValueId> yields;
    if (signature_.mask() == none) {
      EAGLE_ASSIGN_OR_RETURN(yields, running());
    } else {
      w_.begin();
      std::vector<ValueId> kept = stopped();
      Region then = w_.end(std::move(kept));
      w_.begin();
      primal_.map(entries_[static_cast<std::size_t>(kernel_.terminated_argument())], w_.boolean(false));
      EAGLE_ASSIGN_OR_RETURN(std::vector<ValueId> run, running());
      Region otherwise = w_.end(std::move(run));
      yields = w_.branch(signature_.mask(), std::move(then), std::move(otherwise));
    }
    return signature_.finish(w_.end(std::move(yields)), "jvp", options_.limits);
  }

private:
  static constexpr std::size_t no_place = ~std::size_t{0};

  [[nodiscard]] const Argument& argument(std::size_t a) const { return kernel_.arguments[a]; }

  // Of the plane with the argument's tangent; `terminated`: there is none.
  [[nodiscard]] Role role_of_dot(std::size_t a) const {
    const Role role = argument(a).role;
    if (role == Role::mutable_) return request_.wrt[a] ? role : Role::output;
    if (is_differentiable(argument(a))) return request_.wrt[a] ? role : Role::terminated;
    return role;
  }
  [[nodiscard]] bool is_stored(std::size_t a) const {
    return places_[a] != no_place && is_committed(w_.out.arguments[places_[a]].role);
  }

  std::vector<ValueId> stopped() {
    std::vector<ValueId> yields;
    for (std::size_t a = 0; a < kernel_.arguments.size(); ++a) {
      if (!is_stored(a)) continue;
      const bool kept = w_.out.arguments[places_[a]].role == Role::mutable_;
      yields.push_back(kept ? signature_.entry(places_[a]) : w_.zero(argument(a).type));
    }
    return yields;
  }

  StatusOr<std::vector<ValueId>> running() {
    Forward forward(primal_, w_, activity_, places_);
    for (std::size_t a = 0; a < kernel_.arguments.size(); ++a) {
      if (request_.wrt[a] && entries_[a] != unmapped) forward.set(entries_[a], signature_.entry(places_[a]));
    }
    EAGLE_RETURN_IF_ERROR(forward.ops(kernel_.body));
    std::vector<ValueId> yields;
    std::size_t yield = 0;
    for (std::size_t a = 0; a < kernel_.arguments.size(); ++a) {
      if (!is_committed(argument(a).role)) continue;
      const ValueId committed = kernel_.body.yields[yield++];
      if (is_stored(a)) yields.push_back(forward.dot(committed));
    }
    return yields;
  }

  const Kernel& kernel_;
  const Options& options_;
  Request request_;
  std::vector<ValueId> entries_;
  Activity activity_;
  Writer w_;
  Primal primal_;
  Signature signature_;
  std::vector<std::size_t> places_;  // by argument of the kernel: the derivative's argument with its tangent
};

}  // namespace

StatusOr<Derivative> jvp(const Kernel& kernel, const Options& options) {
  EAGLE_ASSIGN_OR_RETURN(Request request, checked_request(kernel, options, "jvp"));
  const Kernel scalars = in_scalars(kernel);
  return Jvp(scalars, options, std::move(request)).make();
}

}  // namespace eagle::kernel::diff
