import { useMutation, useQuery } from '@tanstack/react-query';

import type { StoredFile } from '../../api/storage';
import { removeSignature, signatureQuery, signFile, WalletDeclined, walletsQuery, type Wallet } from '../../api/wallet';
import { useMay } from '../../app/useSession';
import { Button } from '../../components/Button';
import { CodeBlock } from '../../components/CodeBlock';
import { ErrorPanel } from '../../components/ErrorPanel';
import { Note, Row } from '../../components/Row';
import { StatusBadge } from '../../components/StatusBadge';
import { showToast } from '../../components/Toast';
import { useText } from '../../i18n/language';
import * as wallet from '../../i18n/wallet';

/** The wallet signature of a file: shown, made by a wallet of the browser, removed. */
export function FileSignature({ file }: { file: StoredFile }) {
  const t = useText(wallet);
  const may = useMay();
  const { data, error, refetch } = useQuery(signatureQuery(file));
  const remove = useMutation({ mutationFn: () => removeSignature(file), onSuccess: () => showToast(t.removed) });
  return (
    <>
      <Row>
        <h3>{t.title}</h3>
        {data && <StatusBadge tone="ok">{t.signed}</StatusBadge>}
      </Row>
      <Note>{data === null && !may('editor') ? t.none : t.text}</Note>
      {error && <ErrorPanel error={error} onRetry={refetch} />}
      {data && <CodeBlock code={data.signature} label={t.signature} />}
      {data && may('editor') && (
        <Row>
          <Button isDisabled={remove.isPending} onPress={() => remove.mutate()}>
            {t.remove}
          </Button>
        </Row>
      )}
      {remove.error && <ErrorPanel error={remove.error} />}
      {data === null && may('editor') && <SignButtons file={file} />}
    </>
  );
}

function SignButtons({ file }: { file: StoredFile }) {
  const t = useText(wallet);
  const wallets = useQuery(walletsQuery).data;
  const sign = useMutation({ mutationFn: (chosen: Wallet) => signFile(file, chosen), onSuccess: () => showToast(t.done) });
  if (wallets?.length === 0) {
    const network = file.network === 'public' ? ' --public' : '';
    return (
      <>
        <p>{t.noWallet}</p>
        <CodeBlock code={`roost signatures add ${file.cid}${network} --address 0x... --signature 0x...`} label={t.command} />
      </>
    );
  }
  return (
    <>
      <Row>
        {wallets?.map((one) => (
          <Button key={one.id} isDisabled={sign.isPending} onPress={() => sign.mutate(one)}>
            {sign.isPending ? t.signing : one.name ? t.signWith(one.name) : t.sign}
          </Button>
        ))}
      </Row>
      {sign.error instanceof WalletDeclined ? <Note>{t.declined}</Note> : sign.error && <ErrorPanel error={sign.error} />}
    </>
  );
}
