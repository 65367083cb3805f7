// The reverse derivative of a kernel: its signature, and the step of a sample that runs or is stopped.
#include <utility>

#include "engine/kernel/copier.h"
#include "engine/kernel/diff/plain.h"
#include "engine/kernel/diff/request.h"
#include "engine/kernel/diff/reverse.h"

namespace eagle::kernel::diff {
namespace {

class Vjp {
public:
  Vjp(const Kernel& kernel, const Options& options, Request request)
      : kernel_(kernel),
        options_(options),
        request_(std::move(request)),
        entries_(entries_of(kernel)),
        activity_(kernel, request_.wrt, request_.unasked),
        w_(kernel),
        primal_(kernel, w_, true),
        signature_(kernel, primal_, w_),
        places_(kernel.arguments.size(), no_place),
        firsts_(kernel.arguments.size(), no_place) {}

  StatusOr<Derivative> make() {
    signature_.declare_inputs();
    declare_bars();
    if (options_.step_param && asks_for_step(kernel_.body)) signature_.declare_step();
    std::vector<ValueId> yields;
    if (signature_.mask() == none) {
      EAGLE_ASSIGN_OR_RETURN(yields, running());
    } else {
      w_.begin();
      std::vector<ValueId> kept = stopped();
      Region then = w_.end(std::move(kept));
      w_.begin();
      primal_.map(entries_[mask_argument()], w_.boolean(false));
      EAGLE_ASSIGN_OR_RETURN(std::vector<ValueId> run, running());
      Region otherwise = w_.end(std::move(run));
      yields = w_.branch(signature_.mask(), std::move(then), std::move(otherwise));
    }
    return signature_.finish(w_.end(std::move(yields)), "vjp", options_.limits);
  }

private:
  static constexpr std::size_t no_place = ~std::size_t{0};

  [[nodiscard]] std::size_t mask_argument() const {
    return static_cast<std::size_t>(kernel_.terminated_argument());
  }
  [[nodiscard]] const Argument& argument(std::size_t a) const { return kernel_.arguments[a]; }

  void declare_bars() {
    for (std::size_t a = 0; a < kernel_.arguments.size(); ++a) {
      if (!is_real(argument(a).type.scalar)) continue;
      if (const Role role = role_of_bar(a); role != Role::terminated)
        places_[a] = signature_.declare(Part::bar, a, role, argument(a).type, axes_of_bar(a));
      if (is_extreme(argument(a)) && !request_.unasked[a])
        firsts_[a] = signature_.declare(Part::first, a, Role::table, integer_type);
    }
  }

  // Of the plane with the argument's adjoint; `terminated`: there is none.
  [[nodiscard]] Role role_of_bar(std::size_t a) const {
    const bool wrt = request_.wrt[a];
    switch (argument(a).role) {
      case Role::read:
        return !wrt ? Role::terminated : request_.accumulate[a] ? Role::mutable_ : Role::output;
      case Role::param:
        return !wrt ? Role::terminated : options_.sum_params ? Role::reduce : Role::output;
      case Role::mutable_:
        return wrt ? Role::mutable_ : request_.unasked[a] ? Role::terminated : Role::read;
      case Role::output:
        return request_.unasked[a] ? Role::terminated : Role::read;
      case Role::table:
        return wrt ? Role::accum : Role::terminated;
      case Role::reduce:
        return request_.unasked[a] ? Role::terminated : Role::table;
      case Role::accum:
        return Role::table;
      case Role::terminated:
        break;
    }
    return Role::terminated;
  }
  [[nodiscard]] std::vector<Axis> axes_of_bar(std::size_t a) const {
    return is_indexed(argument(a).role) ? argument(a).axes : std::vector<Axis>{};
  }

  // Whether the adjoint is stored by the sample, as one of the derivative's committed values.
  [[nodiscard]] bool is_stored(std::size_t a) const {
    return places_[a] != no_place && is_committed(w_.out.arguments[places_[a]].role);
  }
  // Whether the plane's old value has a part in the new one: 0 elsewhere.
  [[nodiscard]] bool is_kept(std::size_t a) const {
    return w_.out.arguments[places_[a]].role == Role::mutable_;
  }

  std::vector<ValueId> stopped() {
    std::vector<ValueId> yields;
    for (std::size_t a = 0; a < kernel_.arguments.size(); ++a) {
      if (!is_stored(a)) continue;
      yields.push_back(is_kept(a) ? signature_.entry(places_[a]) : w_.zero(argument(a).type));
    }
    return yields;
  }

  StatusOr<std::vector<ValueId>> running() {
    primal_.ops(kernel_.body);
    Reverse reverse(primal_, w_, activity_, places_);
    std::size_t yield = 0;
    for (std::size_t a = 0; a < kernel_.arguments.size(); ++a) {
      if (!is_committed(argument(a).role)) continue;
      const ValueId committed = kernel_.body.yields[yield++];
      if (places_[a] == no_place || request_.unasked[a]) continue;
      if (is_extreme(argument(a))) {
        const ValueId first = w_.gather(firsts_[a], {w_.integer(0)});
        const ValueId wins = w_.compare(Opcode::eq, w_.op(Opcode::sample_index, {}, integer_type), first);
        const ValueId bar = w_.gather(places_[a], {w_.integer(0)});
        reverse.contribute(committed, w_.select(wins, bar, w_.zero(argument(a).type)), wins);
      } else if (argument(a).role == Role::reduce) {
        reverse.contribute(committed, w_.gather(places_[a], {w_.integer(0)}));
      } else {
        reverse.contribute(committed, signature_.entry(places_[a]));
      }
    }
    EAGLE_RETURN_IF_ERROR(reverse.ops(kernel_.body));
    std::vector<ValueId> yields;
    for (std::size_t a = 0; a < kernel_.arguments.size(); ++a) {
      if (!is_stored(a)) continue;
      const auto bar = reverse.take_whole(entries_[a]);
      ValueId value = bar ? *bar : w_.zero(argument(a).type);
      if (argument(a).role == Role::read && is_kept(a))
        value = bar ? w_.add(signature_.entry(places_[a]), value) : signature_.entry(places_[a]);
      yields.push_back(value);
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
  // By argument of the kernel: the derivative's argument with its adjoint, and with the winner of an extreme.
  std::vector<std::size_t> places_;
  std::vector<std::size_t> firsts_;
};

}  // namespace

StatusOr<Derivative> vjp(const Kernel& kernel, const Options& options) {
  EAGLE_ASSIGN_OR_RETURN(Request request, checked_request(kernel, options, "vjp"));
  const Kernel scalars = in_scalars(kernel);
  return Vjp(scalars, options, std::move(request)).make();
}

}  // namespace eagle::kernel::diff
