// Channel: the lines between two rows, as in the channel routing of circuit layout.
//
// Each net comes down at its tops, runs along one horizontal track, and goes down to its bottoms. Nets on
// one track do not touch; a line that ends in a column lies above one that starts in it.
#pragma once

#include <vector>

namespace eagle::view {

struct ChannelBottom {
  int x = 0;
  // How far it may be moved (a port on a box) to break a cycle; equal to x: not at all (a lane).
  int lowest = 0;
  int highest = 0;
};

struct ChannelNet {
  std::vector<int> tops;
  std::vector<ChannelBottom> bottoms;
  int track = -1;  // result: from 0 at the top; -1 straight down, without a track
};

// Gives every net its track, moving bottoms where it must, and returns the number of tracks. The tops of
// all nets are different columns, and so are the bottoms; a bottom that cannot be moved is no other net's
// top.
int assign_tracks(std::vector<ChannelNet>& nets);

}  // namespace eagle::view
