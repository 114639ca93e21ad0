/* driver.h - what a population of machines asks of whoever drives it: the time, timers, and the store.
 *
 * Two drivers fill this struct: the simulator (virtual time, modelled store) and the real-time loop (CLOCK_MONOTONIC, a
 * real store). The population itself does not know which; that is what makes a validation run the same experiment.
 */
#ifndef LS_DRIVER_H
#define LS_DRIVER_H

#include "manifest/exchange.h"

typedef struct ls_driver {
    void *context;
    /* Nanoseconds since the run began. */
    int64_t (*now)(void *context);
    /* Calls the population's timer function with these values at at_ns (never later timers first). LS_NEVER_NS is not asked. */
    ls_result (*timer)(void *context, int64_t at_ns, uint32_t kind, uint32_t entity, uint64_t argument);
    /* Sends a request for a client; the reply comes to the population's reply function with the same client number. A
     * put's manifest reference passes to the driver. */
    ls_result (*submit)(void *context, uint32_t client, const ls_store_request *request);
    /* Ends the run after the current event. */
    void (*stop)(void *context);
} ls_driver;

#endif
