# Runs in the container, as root: the life of the package, from the installation to the purge.
set -eu

step() { echo "== $*"; }
wrong() {
    echo "wrong: $*"
    systemctl status --no-pager precise || true
    journalctl --no-pager -n 40 -u precise || true
    exit 1
}
# Prints the page of metrics. There is no other client in this root than the shell.
scrape() {
    exec 3<>/dev/tcp/127.0.0.1/7732 || return 1
    printf 'GET /metrics HTTP/1.0\r\n\r\n' >&3
    cat <&3
    exec 3>&-
}
# Waits until the service has read its tables.
sampled() {
    for _ in $(seq 100); do
        if scrape 2>/dev/null | grep -q '^precise_epochs_total [1-9]'; then return 0; fi
        systemctl is-failed --quiet precise && wrong "the service has failed"
        sleep 0.1
    done
    wrong "no epoch in 10 s"
}
main_pid() { systemctl show --property MainPID --value precise; }

step "install"
start=$(date +%s%N)
dpkg --install /packages/first.deb
precise --version | grep --fixed-strings "$(cat /packages/commit)"
systemctl is-active --quiet precise && wrong "the installation started the service"
systemctl is-enabled --quiet precise && wrong "the installation enabled the service"
# The commands of the documents, in a folder of somebody's.
cd /tmp
sh -euc "$(cat /packages/first-answer)" >answer || wrong "no first answer: $(cat answer)"
took=$((($(date +%s%N) - start) / 1000000))
echo "from dpkg to the first answer: $took ms"
[ "$took" -lt 60000 ] || wrong "the first answer took more than a minute"
rm precise.parquet

step "start"
systemctl enable --now precise
sampled
scrape | grep '^precise_samples_total{' | head -n 3
rights=$(grep ^CapEff "/proc/$(main_pid)/status")
echo "$rights"
[ "$(stat --format %u "/proc/$(main_pid)")" != 0 ] || wrong "the service runs as root"

step "upgrade"
echo '# changed' >>/etc/precise/serve.toml
before=$(main_pid)
dpkg --install /packages/second.deb
[ "$(main_pid)" != "$before" ] || wrong "the upgrade did not restart the service"
grep --quiet '^# changed' /etc/precise/serve.toml || wrong "the upgrade replaced the settings"
sampled

step "remove"
dpkg --remove precise
systemctl is-active --quiet precise && wrong "the service runs without its package"
grep --quiet '^# changed' /etc/precise/serve.toml || wrong "the removal took the settings"

step "purge"
dpkg --purge precise
left=$(find / -xdev -name '*precise*' -not -path '/proc/*' -not -path '/packages/*')
[ -z "$left" ] || wrong "the purge left $left"
dpkg-query --show precise 2>/dev/null && wrong "dpkg still knows it"

echo PASSED
