// A model for CalledModule to call: it counts while it is to, and toggles if it is to. Prints how often it was evaluated
// behind each of these: 100 cycles in which it counts, 100 in which it does not, one in which it does, 100 in which it
// does not, 100 in which it toggles; and what it has counted.
#include <cstddef>
#include <cstdint>
#include <cstdio>

template <std::size_t WORDS>
struct VlWide {
  std::uint32_t words[WORDS];
  std::uint32_t& operator[](std::size_t word) { return words[word]; }
};

struct Verilated {
  static int threadContextp() { return 0; }
};

struct Root {
  std::uint8_t clk, clk_before, counts, toggles, toggle;
  std::uint32_t count;
  VlWide<3> wide;
};

struct Model {
  explicit Model(int) {}
  Root root{};
  Root* const rootp = &root;
  int evaluations = 0;
  void eval() {
    ++evaluations;
    if (root.clk != root.clk_before) {
      root.count += root.counts;
      root.toggle ^= root.toggles;
    }
    root.clk_before = root.clk;
  }
};

#include "called_module.h"

int main() {
  CalledModule<Model, Root> called;
  auto run = [&called](int cycles, int counts, int toggles) {
    const std::uint32_t wide[3] = {1, 2, 3};
    for (int cycle = 0; cycle < cycles; ++cycle) {
      called.take(called.model.root.counts, counts);
      called.take(called.model.root.toggles, toggles);
      called.take(called.model.root.wide, wide);
      called.step(called.model.root.clk, called.model.root.clk_before);
      called.settle();
    }
    std::printf("%d\n", called.model.evaluations);
  };
  run(100, 1, 0);
  run(100, 0, 0);
  run(1, 1, 0);
  run(100, 0, 0);
  run(100, 0, 1);
  std::printf("%u\n", called.model.root.count);
}
