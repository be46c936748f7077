// What is reported of perplexity by length.
#ifndef HIPPODROME_TOOLS_EVALUATE_POSITIONS_LENGTH_REPORT_H_
#define HIPPODROME_TOOLS_EVALUATE_POSITIONS_LENGTH_REPORT_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/evaluate/positions/perplexity_by_length.h"
#include "tools/plots/svg.h"

namespace hippodrome {

// {"windows": n, "by_position": [{"first": 1, "last": 64, "tokens": .., "nll": .., ..}, ..],
// "by_context": [{"context": 0, ..}, ..], "ratio_to_2k": {"by_position": .., "by_context": ..}},
// the last being those of the longest, where there are any.
nlohmann::ordered_json LengthJson(const PerplexityByLength& found);

// The same for people: rows of cells for PrintTable().
std::vector<std::vector<std::string>> PositionRows(const PerplexityByLength& found);
std::vector<std::vector<std::string>> ContextRows(const PerplexityByLength& found);
// "perplexity to that at 2048: 1.034 at position 65536, .."; empty where nothing is compared.
std::string RatioLine(const PerplexityByLength& found);

// Against the length, on a logarithmic axis: perplexity by position and by context, tokens per
// second, and bytes of state.
Drawing DrawLengths(const PerplexityByLength& found, const std::string& title);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_EVALUATE_POSITIONS_LENGTH_REPORT_H_
