#include "tools/train/data/synthetic_sequences.h"

#include <algorithm>

namespace hippodrome {
namespace {

// choice() with probabilities 1 / (V - 2) for all ids but the first and the last, which are 0: the
// place of a uniform number among their running sums.
class NormalTokens {
 public:
  explicit NormalTokens(int64_t vocabulary) : sums_(static_cast<size_t>(vocabulary)) {
    const double p = 1.0 / static_cast<double>(vocabulary - 2);
    for (size_t id = 1; id < sums_.size(); ++id) {
      sums_[id] = sums_[id - 1] + (id + 1 < sums_.size() ? p : 0.0);
    }
    for (double& sum : sums_) sum /= sums_.back();
  }

  int32_t Draw(NumpyGenerator& random) const {
    const auto place = std::upper_bound(sums_.begin(), sums_.end(), random.Uniform());
    return static_cast<int32_t>(place - sums_.begin());
  }

 private:
  std::vector<double> sums_;
};

}  // namespace

std::vector<int32_t> InductionHeadSequence(int64_t vocabulary, int64_t length,
                                           NumpyGenerator& random) {
  const NormalTokens tokens(vocabulary);
  const int32_t prefix = static_cast<int32_t>(vocabulary - 1);
  std::vector<int32_t> sequence;
  for (int64_t i = 0; i < length; ++i) sequence.push_back(tokens.Draw(random));
  sequence.push_back(prefix);
  random.Uniform();  // whether there is one trigger or as many as asked for: one
  const size_t trigger = static_cast<size_t>(random.Integer(length - 2));
  sequence[trigger] = prefix;
  sequence.push_back(sequence[trigger + 1]);
  return sequence;
}

std::vector<int32_t> AssociativeRecallSequence(int64_t vocabulary, int64_t length,
                                               NumpyGenerator& random) {
  const int64_t keys = (vocabulary - 2) / 2;
  const int64_t values = vocabulary - 2 - keys;
  // Ids of keys are 1 to `keys`, those of values follow.
  std::vector<int32_t> value_of(static_cast<size_t>(keys));
  for (int32_t& value : value_of) {
    value = static_cast<int32_t>(1 + keys + random.Integer(values));
  }
  std::vector<int64_t> present;  // keys of the sequence in order of appearance
  const auto is_present = [&](int64_t key) {
    return std::find(present.begin(), present.end(), key) != present.end();
  };
  std::vector<int32_t> sequence;
  const auto append = [&](int64_t key) {
    sequence.push_back(static_cast<int32_t>(1 + key));
    sequence.push_back(value_of[static_cast<size_t>(key)]);
  };
  for (int64_t i = 0; i < length / 2; ++i) {
    const int64_t key = random.Integer(keys);
    append(key);
    if (!is_present(key)) present.push_back(key);
  }
  int64_t asked = random.Integer(keys);
  if (!is_present(asked)) asked = present[random.Integer(std::ssize(present))];
  sequence.push_back(static_cast<int32_t>(vocabulary - 1));
  append(asked);
  return sequence;
}

}  // namespace hippodrome
