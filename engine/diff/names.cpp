#include "engine/diff/names.h"

#include <algorithm>
#include <map>
#include <set>

#include "engine/base/nearest.h"
#include "engine/kernel/names.h"
#include "engine/plane/overlap.h"
#include "engine/plane/torn_views.h"

namespace eagle::diff {
namespace {

using kernel::quote_name;

// A plane of a node, by one of its names.
struct Named {
  const Step* step = nullptr;
  const graph::NamedView* plane = nullptr;
  bool written = false;
};

bool is_called(const Step& step, const std::string& name, const std::string& wanted) {
  if (name == wanted) return true;
  const std::string& label = step.node->label;
  return wanted.size() == label.size() + 1 + name.size() && wanted.compare(0, label.size(), label) == 0 &&
         wanted[label.size()] == '.' && wanted.compare(label.size() + 1, name.size(), name) == 0;
}

std::vector<Named> planes_of(const Program& program) {
  std::vector<Named> all;
  program.for_each([&](const Step& step) {
    for (const graph::NamedView& read : step.reads) {
      if (read.view.plane != program.cursors()) all.push_back({&step, &read, false});
    }
    for (const graph::NamedView& written : step.writes) {
      if (written.view.plane != program.cursors()) all.push_back({&step, &written, true});
    }
  });
  return all;
}

// Calls `visit(step, argument)` for each real Param.
template <typename Visit>
void for_each_param(const Program& program, const Visit& visit) {
  program.for_each([&](const Step& step) {
    const auto* const launch = step.as<graph::KernelLaunch>();
    if (launch == nullptr) return;
    const kernel::Kernel& kernel = *program.graph().kernels[launch->kernel];
    for (std::uint32_t i = 0; i < kernel.arguments.size(); ++i) {
      const kernel::Argument& argument = kernel.arguments[i];
      if (argument.role == kernel::Role::param && kernel::is_real(argument.type.scalar)) visit(step, i);
    }
  });
}

const std::string& param_name(const Program& program, const Step& step, std::uint32_t argument) {
  return program.graph().kernels[step.as<graph::KernelLaunch>()->kernel]->arguments[argument].name;
}

std::string listed(const std::set<std::string>& known) {
  constexpr std::size_t most = 12;
  std::string list;
  std::size_t count = 0;
  for (const std::string& candidate : known) {
    if (count++ == most) break;
    list += (list.empty() ? "" : ", ") + quote_name(candidate);
  }
  if (known.size() > most) list += ", ...";
  return list.empty() ? "none" : list;
}

Status unknown(std::string_view what, const std::string& name, const std::set<std::string>& known) {
  return {Reason::unknown_name, std::string(what) + " " + quote_name(name) + ": no node has a real plane" +
                                    (what == "wrt" ? " or Param" : "") + " of that name; there are " +
                                    listed(known)};
}

Status ambiguous(std::string_view what, const std::string& name, const std::vector<Named>& found) {
  std::set<std::string> longer;
  for (const Named& named : found) longer.insert(named.step->node->label + "." + named.plane->name);
  std::string list;
  for (const std::string& candidate : longer) list += (list.empty() ? "" : ", ") + quote_name(candidate);
  return {Reason::unknown_name, std::string(what) + " " + quote_name(name) +
                                    ": several nodes have different arrays of that name; say which: " + list +
                                    (longer.size() == 1 ? " (and give the nodes different names)" : "")};
}

bool one_array(const std::vector<Named>& found) {
  return std::all_of(found.begin(), found.end(),
                     [&](const Named& named) { return named.plane->view == found.front().plane->view; });
}

std::vector<Named> called(const std::vector<Named>& all, const std::string& name, bool written) {
  std::vector<Named> found;
  for (const Named& named : all) {
    if (named.written == written && is_real(named.plane->view) &&
        is_called(*named.step, named.plane->name, name)) {
      found.push_back(named);
    }
  }
  return found;
}

// Refuses a name by which nodes write and none reads.
Status check_read(const std::string& name, const std::vector<Named>& all,
                  const std::set<std::string>& known) {
  const std::vector<Named> written = called(all, name, true);
  if (written.empty()) return {};
  const std::string& label = written.front().step->node->label;
  return {Reason::unknown_name,
          "wrt " + quote_name(name) + ": node " + quote_name(label) +
              " writes it, and no node reads anything by this name; gradients are by what "
              "nodes read, which is " +
              listed(known)};
}

// Refuses a name that only planes of other types have.
Status check_real(std::string_view what, const std::string& name, const std::vector<Named>& all) {
  for (const Named& named : all) {
    if (!is_called(*named.step, named.plane->name, name)) continue;
    return {Reason::wrong_dtype, std::string(what) + " " + quote_name(name) + " is " +
                                     plane::to_string(named.plane->view) +
                                     ", and derivatives are of float64 and float32; leave it out"};
  }
  return {};
}

StatusOr<Wanted> find_seed(const Program& program, const std::vector<Named>& all, const std::string& name) {
  std::vector<Named> found = called(all, name, true);
  std::uint32_t leaf = 0;
  if (found.empty()) {
    found = called(all, name, false);
    leaf = program.leaves() - 1;
  } else {
    leaf = found.back().step->leaf;
  }
  if (found.empty()) {
    EAGLE_RETURN_IF_ERROR(check_real("seed", name, all));
    std::set<std::string> known;
    for (const Named& named : all) {
      if (named.written && is_real(named.plane->view)) known.insert(named.plane->name);
    }
    return unknown("seed", name, known);
  }
  if (!one_array(found)) return ambiguous("seed", name, found);
  return Wanted{name, Place{leaf, found.front().plane->view}, {}};
}

StatusOr<Wanted> find_input(const Program& program, const std::vector<Named>& all, const std::string& name) {
  const std::vector<Named> found = called(all, name, false);
  if (!found.empty()) {
    if (!one_array(found)) return ambiguous("wrt", name, found);
    const Named& first = found.front();
    const bool as_launched = std::none_of(all.begin(), all.end(), [&](const Named& other) {
      return other.written && other.step->leaf < first.step->leaf &&
             plane::overlap(other.plane->view, first.plane->view).overlaps;
    });
    return Wanted{name, Place{as_launched ? 0 : first.step->leaf, first.plane->view}, {}};
  }
  Wanted wanted{name, std::nullopt, {}};
  std::set<std::string> known;
  for_each_param(program, [&](const Step& step, std::uint32_t argument) {
    const std::string& param = param_name(program, step, argument);
    known.insert(param);
    if (is_called(step, param, name)) wanted.params.push_back({step.launch, argument});
  });
  if (!wanted.params.empty()) return wanted;
  for (const Named& named : all) {
    if (!named.written && is_real(named.plane->view)) known.insert(named.plane->name);
  }
  EAGLE_RETURN_IF_ERROR(check_read(name, all, known));
  EAGLE_RETURN_IF_ERROR(check_real("wrt", name, all));
  return unknown("wrt", name, known);
}

}  // namespace

StatusOr<std::vector<Wanted>> find_seeds(const Program& program, const std::vector<std::string>& names) {
  const std::vector<Named> all = planes_of(program);
  std::vector<Wanted> seeds;
  for (const std::string& name : names) {
    EAGLE_ASSIGN_OR_RETURN(Wanted seed, find_seed(program, all, name));
    seeds.push_back(std::move(seed));
  }
  return seeds;
}

StatusOr<std::vector<Wanted>> find_inputs(const Program& program, const std::vector<std::string>& names) {
  const std::vector<Named> all = planes_of(program);
  std::vector<Wanted> inputs;
  for (const std::string& name : names) {
    EAGLE_ASSIGN_OR_RETURN(Wanted input, find_input(program, all, name));
    inputs.push_back(std::move(input));
  }
  return inputs;
}

namespace {

// Planes whose values from before the launch are read. A view counts unless one write, which surely happens,
// has covered it before.
std::vector<Named> found_by_launch(const Program& program) {
  std::vector<std::vector<plane::View>> written(program.blocks().size());
  std::vector<Named> found;
  std::uint32_t certain_leaf = ~std::uint32_t{0};
  program.for_each([&](const Step& step) {
    for (const graph::NamedView& read : step.reads) {
      const std::size_t block = program.block_of(read.view);
      if (block == Program::no_block || program.is_scratch(block)) continue;
      const bool covered =
          std::any_of(written[block].begin(), written[block].end(),
                      [&](const plane::View& earlier) { return plane::covers(earlier, read.view); });
      if (!covered) found.push_back({&step, &read, false});
    }
    if (step.as<graph::Conditional>() != nullptr) certain_leaf = step.leaf;  // its body may not run
    if (step.leaf == certain_leaf) return;
    for (const graph::NamedView& write : step.writes) {
      const std::size_t block = program.block_of(write.view);
      if (block != Program::no_block) written[block].push_back(write.view);
    }
  });
  return found;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> carried(const Program& program) {
  std::vector<Named> written;
  for (const Named& named : planes_of(program)) {
    if (named.written) written.push_back(named);
  }
  std::vector<std::pair<std::string, std::string>> names;
  for (const Named& read : found_by_launch(program)) {
    const bool changed = std::any_of(written.begin(), written.end(), [&](const Named& other) {
      return plane::overlap(other.plane->view, read.plane->view).overlaps;
    });
    if (changed) names.emplace_back(read.step->node->label, read.plane->name);
  }
  return names;
}

std::vector<Wanted> all_inputs(const Program& program) {
  std::vector<Named> found = found_by_launch(program);
  std::erase_if(found, [](const Named& named) { return !is_real(named.plane->view); });

  std::vector<Wanted> inputs;
  std::map<std::string, plane::View> names;
  std::map<std::string, std::vector<Named>> by_name;
  for (const Named& named : found) by_name[named.plane->name].push_back(named);
  for (const auto& [name, users] : by_name) {
    for (const Named& named : users) {
      const std::string shared = one_array(users) ? name : named.step->node->label + "." + name;
      // Nodes that share a label as well are counted.
      std::string key = shared;
      for (int number = 2; names.contains(key) && names.at(key) != named.plane->view; ++number)
        key = shared + "#" + std::to_string(number);
      // The value from before the launch, whichever node it is named after.
      if (names.emplace(key, named.plane->view).second)
        inputs.push_back({key, Place{0, named.plane->view}, {}});
    }
  }
  std::map<std::string, std::vector<std::pair<const Step*, std::uint32_t>>> params;
  for_each_param(program, [&](const Step& step, std::uint32_t argument) {
    params[param_name(program, step, argument)].emplace_back(&step, argument);
  });
  for (const auto& [name, users] : params) {
    const bool alone = users.size() == 1 && !names.contains(name);
    std::map<std::string, Wanted> by_key;
    for (const auto& [step, argument] : users) {
      const std::string key = alone ? name : step->node->label + "." + name;
      Wanted& wanted = by_key[key];
      wanted.name = key;
      wanted.params.push_back({step->launch, argument});
    }
    for (auto& [key, wanted] : by_key) inputs.push_back(std::move(wanted));
  }
  return inputs;
}

}  // namespace eagle::diff
