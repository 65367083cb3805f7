// SharedFunction: a function whose copies share what it is made of, so that passing one on allocates nothing.
#pragma once

#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

namespace eagle::server {

template <typename Signature>
class SharedFunction;

// Copies may be called from several threads as far as the function itself may.
template <typename... Arguments>
class SharedFunction<void(Arguments...)> {
public:
  using Function = std::function<void(Arguments...)>;

  SharedFunction() = default;
  // One that exists already, and with it whatever the pointer keeps.
  SharedFunction(std::shared_ptr<const Function> function) : function_(std::move(function)) {}
  template <typename Call>
  requires(!std::is_same_v<std::remove_cvref_t<Call>, SharedFunction> &&
           std::is_invocable_v<Call&, Arguments...>) SharedFunction(Call&& call)
      : function_(std::make_shared<const Function>(std::forward<Call>(call))) {}

  void operator()(Arguments... arguments) const { (*function_)(arguments...); }
  explicit operator bool() const { return function_ != nullptr; }

private:
  std::shared_ptr<const Function> function_;
};

}  // namespace eagle::server
