#include "tools/evaluate/encoders/encoder_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hippodrome::encoder_session_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(BatchOrderTest, InputsOfOneLengthShareABatch) {
  EXPECT_THAT(BatchesOfOneLength(std::vector<int64_t>{5, 3, 5, 4, 3}, 100),
              ElementsAre(ElementsAre(1, 4), ElementsAre(3), ElementsAre(0, 2)));
}

TEST(BatchOrderTest, ABatchHasALimit) {
  EXPECT_THAT(BatchesOfOneLength(std::vector<int64_t>{4, 4, 4}, 8),
              ElementsAre(ElementsAre(0, 1), ElementsAre(2)));
  EXPECT_THAT(BatchesOfOneLength(std::vector<int64_t>{4, 4}, 7),
              ElementsAre(ElementsAre(0), ElementsAre(1)));
}

TEST(BatchOrderTest, OneInputMayAlwaysBeAlone) {
  EXPECT_THAT(BatchesOfOneLength(std::vector<int64_t>{9, 9}, 1),
              ElementsAre(ElementsAre(0), ElementsAre(1)));
  EXPECT_THAT(BatchesOfOneLength({}, 8), IsEmpty());
}

}  // namespace
}  // namespace hippodrome::encoder_session_test
