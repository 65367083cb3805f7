// Lent: a part of a request that is the caller's, for as long as this lives. A copy of a large description
// costs as much as sending it.
#pragma once

namespace eagle {

// `lend` and `take_back` are unsafe_arena_set_allocated_ and unsafe_arena_release_ of that part, which nobody
// changes meanwhile.
template <typename Request, typename Part>
class Lent {
public:
  Lent(Request& request, const Part& part, void (Request::*lend)(Part*), Part* (Request::*take_back)())
      : request_(request), take_back_(take_back) {
    (request.*lend)(const_cast<Part*>(&part));
  }
  ~Lent() { static_cast<void>((request_.*take_back_)()); }
  Lent(const Lent&) = delete;
  Lent& operator=(const Lent&) = delete;

private:
  Request& request_;
  Part* (Request::*take_back_)();
};

}  // namespace eagle
