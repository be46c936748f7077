#include "kernels/tape/tape_memory.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

#include "kernels/make_backend.h"

namespace hippodrome::tape_memory_test {
namespace {

using Cells = std::set<std::pair<int64_t, int64_t>>;

Cells CellsOf(const Rectangle& r) {
  Cells cells;
  for (int64_t i = r.row; i < r.row + r.rows; ++i) {
    for (int64_t j = r.col; j < r.col + r.cols; ++j) cells.insert({i, j});
  }
  return cells;
}

TEST(RectanglesTest, NothingIsSetAtFirst) {
  const auto missing = Rectangles().Missing({1, 2, 3, 4});
  ASSERT_EQ(missing.size(), 1u);
  EXPECT_EQ(missing[0].area(), 12);
}

// Against a set of cells, after every one of many random changes.
TEST(RectanglesTest, AgreesWithASetOfCells) {
  std::minstd_rand random(1);
  const auto below = [&](int64_t n) { return static_cast<int64_t>(random() % n); };
  const auto draw = [&] { return Rectangle{below(6), below(6), 1 + below(5), 1 + below(5)}; };
  Rectangles rectangles;
  Cells expected;
  for (int change = 0; change < 500; ++change) {
    const Rectangle r = draw();
    if (below(2) == 0) {
      rectangles.Add(r);
      expected.merge(CellsOf(r));
    } else {
      rectangles.Remove(r);
      for (const auto& cell : CellsOf(r)) expected.erase(cell);
    }
    const Rectangle asked = draw();
    Cells missing;
    size_t area = 0;
    for (const Rectangle& part : rectangles.Missing(asked)) {
      area += static_cast<size_t>(part.area());
      missing.merge(CellsOf(part));
    }
    EXPECT_EQ(area, missing.size()) << "the parts overlap";
    for (const auto& cell : CellsOf(asked)) {
      EXPECT_NE(missing.contains(cell), expected.contains(cell));
    }
  }
}

class TapeMemoryTest : public testing::Test {
 protected:
  OwnedTensor New(int64_t rows, int64_t cols) {
    OwnedTensor matrix = backend_->NewTensor(rows, cols);
    memory_.Register(matrix);
    return matrix;
  }
  std::vector<float> Values(Tensor x) {
    std::vector<float> values(static_cast<size_t>(x.rows * x.cols));
    backend_->Download(x, values);
    return values;
  }

  std::unique_ptr<TrainingBackend> backend_ = MakeCpuBackend({.threads = 1});
  TapeMemory memory_{*backend_};
};

TEST_F(TapeMemoryTest, SavedValuesStayInPlaceUntilTheyAreOverwritten) {
  const OwnedTensor x = New(2, 3);
  backend_->Fill(1, x);
  const auto saved = memory_.Save(x.view.Cols(0, 2));
  EXPECT_EQ(saved->view.data, x.view.data);
  memory_.BeforeWrite(x.view.Cols(2, 1));  // beside it
  EXPECT_EQ(saved->view.data, x.view.data);
  memory_.BeforeWrite(x.view.Rows(1, 1));
  EXPECT_NE(saved->view.data, x.view.data);
  backend_->Fill(2, x);
  EXPECT_EQ(Values(saved->view), std::vector<float>(4, 1.0f));
}

TEST_F(TapeMemoryTest, CopiesAreUsedAgainOnceTheyAreLetGo) {
  const OwnedTensor x = New(2, 3);
  auto saved = memory_.Save(x);
  memory_.BeforeWrite(x);
  const void* copy = saved->view.data;
  saved.reset();
  saved = memory_.Save(x);
  const auto other = memory_.Save(x);
  memory_.BeforeWrite(x);
  EXPECT_TRUE(saved->view.data == copy || other->view.data == copy);
  EXPECT_NE(saved->view.data, other->view.data);
}

TEST_F(TapeMemoryTest, TheFirstContributionReplacesAndTheNextOnesAdd) {
  const OwnedTensor x = New(2, 4);
  EXPECT_EQ(memory_.Take(x).data, nullptr);
  EXPECT_FALSE(memory_.Into(x).add);
  EXPECT_TRUE(memory_.Into(x).add);
  EXPECT_NE(memory_.Take(x).data, nullptr);
  memory_.Unset(x);
  EXPECT_EQ(memory_.Take(x).data, nullptr);
}

TEST_F(TapeMemoryTest, PartsThatNothingContributedToAreZero) {
  const OwnedTensor x = New(2, 4);
  const Gradient part = memory_.Into(x.view.Cols(1, 2));
  EXPECT_FALSE(part.add);
  backend_->Fill(5, part.tensor);
  const Tensor dx = memory_.Take(x);
  EXPECT_EQ(Values(dx), (std::vector<float>{0, 5, 5, 0, 0, 5, 5, 0}));
}

TEST_F(TapeMemoryTest, ParametersKeepTheirGradients) {
  const OwnedTensor x = New(1, 2);
  EXPECT_EQ(memory_.OfParameter(x).data, nullptr);
  memory_.MakeParameter(x);
  backend_->Fill(3, memory_.OfParameter(x));
  memory_.UnsetAll();
  EXPECT_EQ(Values(memory_.OfParameter(x)), (std::vector<float>{3, 3}));
}

TEST_F(TapeMemoryTest, MatricesStayUntilTheyAreDropped) {
  Tensor view;
  {
    const OwnedTensor x = New(2, 3);
    view = x;
  }
  EXPECT_FALSE(memory_.Into(view).add);
  EXPECT_TRUE(memory_.Into(view).add);
  memory_.DropUnused();
  EXPECT_THROW(memory_.Into(view), std::logic_error);
}

TEST_F(TapeMemoryTest, RefusesMatricesThatItDoesNotKnow) {
  const OwnedTensor known = New(1, 1);
  const OwnedTensor stranger = backend_->NewTensor(4, 4);
  EXPECT_THROW(memory_.Into(stranger), std::logic_error);
}

}  // namespace
}  // namespace hippodrome::tape_memory_test
