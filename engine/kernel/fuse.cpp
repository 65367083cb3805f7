#include "engine/kernel/fuse.h"

#include <algorithm>
#include <string>
#include <utility>

#include "eagle/v1/kernel.pb.h"
#include "engine/kernel/copier.h"
#include "engine/kernel/wire.h"
#include "engine/kernel/work.h"

namespace eagle::kernel {
namespace {

// What the parts do with the plane at one place.
struct Place {
  bool touched = false;
  bool read = false;     // as it is before the first part, or as a table
  bool written = false;  // by some part
  Fused::Origin first;
  std::uint32_t argument = Fused::none;  // of the fused kernel
  ValueId value = unmapped;              // what it holds, once a part has written it or its entry value
};

class Fuser {
public:
  Fuser(std::span<const FusePart> parts, const std::vector<bool>& dropped)
      : parts_(parts), dropped_(dropped), places_(dropped.size()), copier_(*parts.front().kernel) {
    copier_.out.source_files.clear();
    for (const FusePart& part : parts) accesses_.push_back(accesses(*part.kernel));
  }

  Fused make() {
    for (std::size_t p = 0; p < parts_.size(); ++p) look_at(p);
    made_.arguments.resize(parts_.size());
    for (std::size_t p = 0; p < parts_.size(); ++p) declare(p);
    for (std::size_t p = 0; p < parts_.size(); ++p) append(p);
    yield();
    made_.kernel = std::move(copier_.out);
    return std::move(made_);
  }

private:
  // How the part sees its planes, after those before it.
  void look_at(std::size_t p) {
    const FusePart& part = parts_[p];
    for (std::size_t a = 0; a < part.places.size(); ++a) {
      if (!has_plane(part.kernel->arguments[a].role)) continue;
      Place& place = places_[part.places[a]];
      if (!place.touched) place.first = {p, a};
      place.touched = true;
      if (accesses_[p][a].used && !place.written) place.read = true;
    }
    for (std::size_t a = 0; a < part.places.size(); ++a) {
      if (accesses_[p][a].written) places_[part.places[a]].written = true;
    }
  }

  void declare(std::size_t p) {
    const FusePart& part = parts_[p];
    for (std::size_t a = 0; a < part.places.size(); ++a) {
      std::uint32_t& stands = made_.arguments[p].emplace_back(Fused::none);
      if (!has_plane(part.kernel->arguments[a].role)) {
        stands = add(part.kernel->arguments[a], {p, a});
        continue;
      }
      Place& place = places_[part.places[a]];
      if (dropped_[part.places[a]]) continue;
      if (place.first.part == p && place.first.argument == a) {
        Argument argument = part.kernel->arguments[a];
        if (argument.role != Role::table) argument.role = role_of(place);
        place.argument = add(std::move(argument), {p, a});
        place.value = entries_.back();
      }
      stands = place.argument;
    }
  }

  static Role role_of(const Place& place) {
    if (!place.written) return Role::read;
    return place.read ? Role::mutable_ : Role::output;
  }

  std::uint32_t add(Argument argument, Fused::Origin origin) {
    const auto number = static_cast<std::uint32_t>(made_.origins.size());
    argument.name = "a" + std::to_string(number);
    for (std::size_t axis = 0; axis < argument.axes.size(); ++axis)
      argument.axes[axis].name = "i" + std::to_string(axis);
    made_.origins.push_back(origin);
    entries_.push_back(unmapped);
    if (has_entry_value(argument.role)) {
      entries_.back() = copier_.fresh(argument.type);
      copier_.out.body.arguments.push_back(entries_.back());
    }
    copier_.out.arguments.push_back(std::move(argument));
    return number;
  }

  // The ops of a part, from the values that its planes hold by now.
  void append(std::size_t p) {
    const FusePart& part = parts_[p];
    const Kernel& kernel = *part.kernel;
    copier_.begin(kernel);
    const std::vector<ValueId> entries = entries_of(kernel);
    std::vector<std::uint32_t> tables = made_.arguments[p];
    for (std::size_t a = 0; a < part.places.size(); ++a) {
      if (entries[a] == unmapped) continue;
      const bool by_value = !has_plane(kernel.arguments[a].role);
      copier_.map(entries[a], by_value ? entries_[tables[a]] : places_[part.places[a]].value);
    }
    copier_.tables_at(std::move(tables));
    for (const Op& op : kernel.body.ops) copier_.copy(op, copier_.out.body);
    // Of two outputs at one place, the later argument is the one that stays.
    std::size_t yield = 0;
    for (std::size_t a = 0; a < part.places.size(); ++a) {
      if (!is_committed(kernel.arguments[a].role)) continue;
      const ValueId value = copier_.now(kernel.body.yields[yield++]);
      if (accesses_[p][a].written) places_[part.places[a]].value = value;
    }
  }

  void yield() {
    for (std::size_t i = 0; i < made_.origins.size(); ++i) {
      if (!is_committed(copier_.out.arguments[i].role)) continue;
      const Fused::Origin& origin = made_.origins[i];
      copier_.out.body.yields.push_back(places_[parts_[origin.part].places[origin.argument]].value);
    }
  }

  std::span<const FusePart> parts_;
  const std::vector<bool>& dropped_;
  std::vector<Place> places_;
  std::vector<std::vector<Access>> accesses_;  // by part
  Copier copier_;
  std::vector<ValueId> entries_;  // by argument of the fused kernel
  Fused made_;
};

// Ops keep what they compute; where they were written is another kernel's affair.
void forget_locations(Region& region) {
  for (Op& op : region.ops) {
    op.location = {};
    for (Region& nested : op.regions) forget_locations(nested);
  }
}

}  // namespace

bool can_fuse(const Kernel& kernel) {
  return kernel.terminated_argument() < 0 && !kernel.shares() && !has_loops(kernel);
}

StatusOr<Fused> fuse(std::span<const FusePart> parts, const std::vector<bool>& dropped,
                     const Limits& limits) {
  Fused made = Fuser(parts, dropped).make();
  made.kernel.name = "fused";
  forget_locations(made.kernel.body);
  v1::Kernel message;
  to_message(made.kernel, message);
  EAGLE_ASSIGN_OR_RETURN(made.kernel, verify(message, limits));
  return made;
}

}  // namespace eagle::kernel
