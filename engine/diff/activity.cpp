#include "engine/diff/activity.h"

#include <algorithm>

#include "engine/plane/overlap.h"
#include "engine/plane/torn_views.h"

namespace eagle::diff {
namespace {

// Views, by the blocks that they lie in.
class ViewSet {
public:
  explicit ViewSet(const Program& program) : program_(program), views_(program.blocks().size()) {}

  // Whether it was not there.
  bool add(const plane::View& view) {
    const std::size_t block = program_.block_of(view);
    if (block == Program::no_block) return false;
    std::vector<plane::View>& views = views_[block];
    if (std::find(views.begin(), views.end(), view) != views.end()) return false;
    views.push_back(view);
    return true;
  }

  [[nodiscard]] bool meets(const plane::View& view) const {
    const std::size_t block = program_.block_of(view);
    if (block == Program::no_block) return false;
    return std::any_of(views_[block].begin(), views_[block].end(),
                       [&](const plane::View& other) { return plane::overlap(view, other).overlaps; });
  }

  void drop_covered(const plane::View& written) {
    const std::size_t block = program_.block_of(written);
    if (block == Program::no_block) return;
    std::erase_if(views_[block], [&](const plane::View& view) { return plane::covers(written, view); });
  }

private:
  const Program& program_;
  std::vector<std::vector<plane::View>> views_;
};

// What the step leaves no earlier value of.
std::vector<plane::View> overwritten(const Step& step) {
  std::vector<plane::View> whole;
  if (step.as<graph::Conditional>() != nullptr) return whole;
  for (const graph::NamedView& written : step.writes) {
    const bool kept = std::any_of(step.reads.begin(), step.reads.end(), [&](const graph::NamedView& read) {
      return read.name == written.name && read.view == written.view;
    });
    if (!kept) whole.push_back(written.view);
  }
  return whole;
}

class ActivityFinder {
public:
  ActivityFinder(const Program& program, const std::vector<std::uint32_t>& params)
      : program_(program), params_(params), varied_(program), live_(program) {
    found_.varied.resize(program.count());
    found_.useful.resize(program.count());
    found_.varied_reads.resize(program.count());
    found_.useful_writes.resize(program.count());
    program.for_each([&](const Step& step) {
      found_.varied_reads[step.number].resize(step.reads.size());
      found_.useful_writes[step.number].resize(step.writes.size());
    });
  }

  void forward(const std::vector<Place>& inputs) {
    for (const Step& step : program_.steps()) {
      for (const Place& input : inputs) {
        if (input.leaf == step.leaf) varied_.add(input.view);
      }
      forward(step, true);
    }
  }

  void backward(const std::vector<Place>& seeds) {
    const std::vector<Step>& steps = program_.steps();
    for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
      for (const Place& seed : seeds) {
        if (seed.leaf == step->leaf) live_.add(seed.view);
      }
      backward(*step, true);
    }
  }

  Activity take() && { return std::move(found_); }

private:
  // `certain`: it runs, and once. Whether something is new.
  bool forward(const Step& step, bool certain) {
    if (step.as<graph::Conditional>() != nullptr) {
      bool fresh = false;
      bool any = false;
      do {
        fresh = false;
        for (const Step& inner : step.body) fresh |= forward(inner, false);
        any |= fresh;
      } while (fresh && step.is_loop());
      return any;
    }
    bool varied = std::find(params_.begin(), params_.end(), step.launch) != params_.end() &&
                  step.as<graph::KernelLaunch>() != nullptr;
    for (std::size_t i = 0; i < step.reads.size(); ++i) {
      const plane::View& view = step.reads[i].view;
      if (!is_real(view) || !varied_.meets(view)) continue;
      found_.varied_reads[step.number][i] = true;
      varied = true;
    }
    if (certain) {
      for (const plane::View& view : overwritten(step)) varied_.drop_covered(view);
    }
    bool added = varied && !found_.varied[step.number];
    if (varied) {
      found_.varied[step.number] = true;
      for (const graph::NamedView& written : step.writes) {
        if (is_real(written.view)) added |= varied_.add(written.view);
      }
    }
    return added;
  }

  bool backward(const Step& step, bool certain) {
    if (step.as<graph::Conditional>() != nullptr) {
      bool fresh = false;
      bool any = false;
      do {
        fresh = false;
        for (auto inner = step.body.rbegin(); inner != step.body.rend(); ++inner)
          fresh |= backward(*inner, false);
        any |= fresh;
      } while (fresh && step.is_loop());
      Program::for_each(step.body, [&](const Step& inner) {
        if (found_.useful[inner.number]) found_.useful[step.number] = true;
      });
      return any;
    }
    bool useful = false;
    for (std::size_t i = 0; i < step.writes.size(); ++i) {
      const plane::View& view = step.writes[i].view;
      if (!is_real(view) || !live_.meets(view)) continue;
      found_.useful_writes[step.number][i] = true;
      useful = true;
    }
    if (!useful) return false;
    bool added = !found_.useful[step.number];
    found_.useful[step.number] = true;
    if (certain) {
      for (const plane::View& view : overwritten(step)) live_.drop_covered(view);
    }
    for (std::size_t i = 0; i < step.reads.size(); ++i) {
      if (found_.varied_reads[step.number][i]) added |= live_.add(step.reads[i].view);
    }
    return added;
  }

  const Program& program_;
  const std::vector<std::uint32_t>& params_;
  Activity found_;
  ViewSet varied_;
  ViewSet live_;
};

}  // namespace

Activity find_activity(const Program& program, const std::vector<Place>& inputs,
                       const std::vector<std::uint32_t>& params, const std::vector<Place>& seeds) {
  ActivityFinder finder(program, params);
  finder.forward(inputs);
  finder.backward(seeds);
  return std::move(finder).take();
}

}  // namespace eagle::diff
