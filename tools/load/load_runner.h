// Runs a load.
#ifndef HIPPODROME_TOOLS_LOAD_LOAD_RUNNER_H_
#define HIPPODROME_TOOLS_LOAD_LOAD_RUNNER_H_

#include <functional>

#include "tools/load/load_client.h"
#include "tools/load/load_figures.h"
#include "tools/load/load_schedule.h"
#include "tools/load/prompts.h"

namespace hippodrome {

// Sends what the plan says through `client`, whose io_context is `context`, on this thread, and
// returns when all of it has ended. `progress` is called about twice a second with the part of the
// run that is done, in [0, 1].
LoadRun RunLoad(boost::asio::io_context& context, LoadClient& client, const Prompts& prompts,
                const LoadPlan& plan, const std::function<void(double done)>& progress);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_LOAD_LOAD_RUNNER_H_
