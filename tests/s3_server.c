/* s3_server.c - starting and ending the server of s3_server.h. */
#include "tests/s3_server.h"

#include "tests/suite.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define SCRIPT "tests/servers/rgw.sh"

static s3_server server;
static enum { NEVER_TRIED, RUNNING, FAILED } state;
static char parent_folder[32] = "/tmp/lakestream-rgw-XXXXXX";
static char folder[48];
static int lifeline = -1; /* write end of the watchman's pipe */
static pid_t watchman;

static bool port_is_free(int port)
{
    int on = 1, one = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(one, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    bool is_free = one >= 0 && bind(one, (struct sockaddr *)&address, sizeof address) == 0;
    if (one >= 0) close(one);
    return is_free;
}

/* Three ports in a row, below the range that the kernel gives to outgoing connections. */
static int find_ports(void)
{
    for (int i = 0; i < 500; i++) {
        int port = 20000 + (int)((unsigned)getpid() * 7919u + (unsigned)i * 31u) % 12000;
        if (port_is_free(port) && port_is_free(port + 1) && port_is_free(port + 2)) return port;
    }
    return -1;
}

static void stop_server(void)
{
    close(lifeline);
    waitpid(watchman, NULL, 0);
}

/* The child leaves our process group, so that Ctrl-C does not reach it before its work is done. */
static bool start_watchman(void)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return false;
    watchman = fork();
    if (watchman < 0) return false;
    if (watchman == 0) {
        char byte;
        setsid();
        close(ends[1]);
        while (read(ends[0], &byte, 1) > 0) continue;
        execl("/bin/sh", "sh", "-c", SCRIPT " stop \"$0\"; rmdir \"$1\"", folder, parent_folder, (char *)NULL);
        _exit(1);
    }
    close(ends[0]);
    lifeline = ends[1];
    atexit(stop_server);
    return true;
}

static bool run_script(int port)
{
    char command[128], line[256];
    snprintf(command, sizeof command, "%s start %s %d", SCRIPT, folder, port);
    FILE *output = popen(command, "r");
    if (output == NULL) return false;
    while (fgets(line, sizeof line, output) != NULL) {
        sscanf(line, "endpoint=%63s", server.endpoint);
        sscanf(line, "tls_endpoint=%63s", server.tls_endpoint);
        sscanf(line, "ca_file=%127s", server.ca_file);
    }
    return pclose(output) == 0 && server.endpoint[0] != '\0';
}

static bool start_server(void)
{
    server.port = find_ports();
    if (server.port < 0 || mkdtemp(parent_folder) == NULL) return false;
    snprintf(folder, sizeof folder, "%s/s", parent_folder);
    if (!start_watchman() || !run_script(server.port)) return false;
    server.options = (ls_s3_options){.endpoint = server.endpoint,
                                     .region = "us-east-1",
                                     .access_key = "lakestream",
                                     .secret_key = "lakestreamsecret",
                                     .request_timeout_ns = 30 * LS_NANOSECONDS_PER_SECOND};
    server.address = "s3://lakestream";
    return true;
}

const s3_server *s3_server_get(void)
{
    if (state == NEVER_TRIED) state = start_server() ? RUNNING : FAILED;
    if (state == RUNNING) return &server;
    fprintf(stderr, "tests: no S3 server (run from the project's root; './setup.sh check' installs radosgw, ceph-mon "
                    "and ceph-osd)\n");
    CU_FAIL("a real S3 server is needed; './setup.sh check' installs it");
    return NULL;
}

ls_store *s3_server_open(const ls_s3_options *options)
{
    char *prefix;
    ls_error error = {""};
    ls_store *store = ls_store_open_s3_with("s3://lakestream", options, &prefix, &error);
    if (store == NULL) fprintf(stderr, "tests: %s\n", error.text);
    CU_ASSERT_PTR_NOT_NULL(store);
    ls_free(prefix);
    return store;
}
